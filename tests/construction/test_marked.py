from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_bench.construction.marked import (
    Marked,
    MarkedQuery,
    read_marked,
    resolve,
    to_samples,
    write_marked,
)
from pii_bench.errors import InputFileError

if TYPE_CHECKING:
    from pathlib import Path

WRITTEN = """\
=== single-0001
register: letter
facts: A1 Full Name, A2 Age, A3 Time
--- text
{A1|Don Flynn} is {A2|79}. The bus of {A3|08:30:00} costs {-|£2.40}.

Don Flynn waits.
--- query: A3 | implied | travel | near
Will he still catch it?
--- query: A2 A3 | explicit | medical | A
At my age, is that too early?
"""


def read_text(tmp_path: Path, text: str) -> tuple[Marked, ...]:
    path = tmp_path / "texts.txt"
    path.write_text(text, encoding="utf-8")
    return read_marked(path)


def test_a_file_is_read(tmp_path: Path) -> None:
    (sample,) = read_text(tmp_path, WRITTEN)

    assert sample.id == "single-0001"
    assert sample.header["register"] == "letter"
    assert sample.queries == (
        MarkedQuery("Will he still catch it?", ("A3",), "implied", "travel", "near"),
        MarkedQuery("At my age, is that too early?", ("A2", "A3"), "explicit", "medical", "A"),
    )


def test_a_written_file_is_read_back(tmp_path: Path) -> None:
    samples = read_text(tmp_path, WRITTEN + "\n" + WRITTEN.replace("0001", "0002"))

    assert read_text(tmp_path, write_marked(samples)) == samples


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("no heading", "texts.txt:1: the file must begin with a line '=== ID'"),
        ("=== s-1\nregister: letter\n", "texts.txt:1: s-1 has no line '--- text'"),
        ("=== s-1\nletter\n--- text\nHi.\n", "texts.txt:2: 'letter' is no 'key: value'"),
        ("=== s-1\n--- text\nHi.\n--- query: A1\nWhy?\n", "texts.txt:4: '--- query: A1' is not"),
        ("=== s-1\n--- text\nHi.\n--- query: one | a | b | c\nWhy?\n", "'one' is no tag of a fact"),
    ],
)
def test_a_broken_file_is_refused_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputFileError) as error:
        read_text(tmp_path, text)

    assert message in str(error.value)


def test_marks_become_spans() -> None:
    resolved = resolve("Hi {A2|79}, {A1+B3|Ann}! {-|£2} for {A1|Ann}.")

    assert resolved.text == "Hi 79, Ann! £2 for Ann."
    assert resolved.spans == {"A2": ((3, 5),), "A1": ((7, 10), (19, 22)), "B3": ((7, 10),)}
    assert resolved.values == {"A2": ("79",), "A1": ("Ann",), "B3": ("Ann",)}
    assert resolved.public == ("£2",)
    assert resolved.stray == ()


def test_spans_of_names_include_unmarked_occurrences() -> None:
    resolved = resolve("Ann Lee: hi. {A1|Ann Lee} waved. 79 or {A2|79}", frozenset({"A1"}))

    assert resolved.spans["A1"] == ((0, 7), (13, 20))
    assert resolved.spans["A2"] == ((34, 36),)


@pytest.mark.parametrize("text", ["{A1|Ann", "{A1 Ann}", "|Ann}", "{-Ann}"])
def test_broken_marks_are_reported(text: str) -> None:
    assert resolve(text).stray


def test_other_braces_are_text() -> None:
    resolved = resolve('the log said {"ok": false} and {}')

    assert (resolved.text, resolved.stray) == ('the log said {"ok": false} and {}', ())


def test_each_query_gives_a_sample(tmp_path: Path) -> None:
    (marked,) = read_text(tmp_path, WRITTEN)
    first, second = to_samples(marked)

    assert (first.id, second.id) == ("single-0001", "single-0001-2")
    assert first.description == second.description
    assert first.description.endswith("costs £2.40.\n\nDon Flynn waits.")
    assert [r.text for r in first.related] == ["08:30:00"]
    assert [(r.subject, r.text) for r in second.related] == [("A", "79"), ("A", "08:30:00")]
    name = first.subjects[0].entities[0]
    assert (name.type, name.category, len(name.spans)) == ("PER", "Full Name", 2)
    assert first.meta == {
        "register": "letter",
        "domain": "travel",
        "reference": "implied",
        "asker": "near",
        "public": ["£2.40"],
    }


def test_facts_are_parsed_from_the_header() -> None:
    def facts(line: str) -> dict[str, str]:
        return Marked("single-0001", {"facts": line}, "", ()).facts

    assert facts("A1 Full Name, B2 City/Region") == {"A1": "Full Name", "B2": "City/Region"}
    assert facts("-") == {}


@given(st.lists(st.tuples(st.text("ab {", max_size=4), st.text("xyz", min_size=1)), max_size=5))
def test_every_span_covers_its_value(pieces: list[tuple[str, str]]) -> None:
    marked = "".join(f"{before}{{A{n}|{value}}}" for n, (before, value) in enumerate(pieces))
    resolved = resolve(marked)

    assert resolved.text == "".join(before + value for before, value in pieces)
    for tag, spans in resolved.spans.items():
        assert {resolved.text[start:end] for start, end in spans} == set(resolved.values[tag])
