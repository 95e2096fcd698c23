from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pii_bench.datasets.capid import TYPES, as_written, read_capid
from pii_bench.errors import InputFileError
from pii_bench.taxonomy import PiiType
from tests.builders import write_lines

if TYPE_CHECKING:
    from pathlib import Path

LINE: dict[str, Any] = {
    "context": "Mo, 41, bakes. Mo has asthma.",
    "question": "Is flour bad for me?",
    "piis": {
        "Mo": {"type": "name", "relevance": "0"},
        "41": {"type": "age", "relevance": "0"},
        "asthma": {"type": "health", "relevance": "1"},
    },
}


def test_a_line_becomes_a_sample_of_one_subject(tmp_path: Path) -> None:
    (sample,), faults = read_capid(write_lines(tmp_path / "test.jsonl", [LINE]))

    assert (sample.id, sample.description, sample.query) == (
        "capid-0001",
        "Mo, 41, bakes. Mo has asthma.",
        "Is flour bad for me?",
    )
    assert [subject.id for subject in sample.subjects] == ["A"]
    assert [(e.text, e.type, e.spans) for e in sample.entities] == [
        ("Mo", "PER", ((0, 2), (15, 17))),
        ("41", "DEM", ((4, 6),)),
        ("asthma", "DEM", ((22, 28),)),
    ]
    assert [(r.subject, r.text) for r in sample.related] == [("A", "asthma")]
    assert faults == ()


def test_low_and_high_are_other_words_for_0_and_1(tmp_path: Path) -> None:
    phrases = {
        "41": {"type": "age", "relevance": "low"},
        "asthma": {"type": "health", "relevance": "high"},
    }
    (sample,), _ = read_capid(write_lines(tmp_path / "test.jsonl", [LINE | {"piis": phrases}]))

    assert [related.text for related in sample.related] == ["asthma"]


def test_a_phrase_is_gold_as_its_context_writes_it(tmp_path: Path) -> None:
    line = {
        "context": "Mo’s sister “Jo” – a vet – is 41.",
        "question": "Is she old?",
        "piis": {
            "Mo's sister": {"type": "relationship", "relevance": "1"},
            '"Jo" - a vet': {"type": "name", "relevance": "0"},
        },
    }
    (sample,), faults = read_capid(write_lines(tmp_path / "test.jsonl", [line]))

    assert [(e.text, e.spans) for e in sample.entities] == [
        ("Mo’s sister", ((0, 11),)),
        ("“Jo” – a vet", ((12, 24),)),
    ]
    assert [related.text for related in sample.related] == ["Mo’s sister"]
    assert faults == ()


@pytest.mark.parametrize(
    ("phrase", "written"),
    [
        ("Mo's", "Mo’s"),
        ("Mo’s", "Mo’s"),
        ("mo's", "mo's"),  # case counts
        ("it's", "it's"),  # stands there exactly
        ("Jo's", "Jo's"),  # stands nowhere
        (" ", " "),
    ],
)
def test_as_written(phrase: str, written: str) -> None:
    assert as_written(phrase, "Mo’s car: it’s red, it's old.") == written


def test_a_phrase_that_does_not_occur_is_a_fault_and_not_gold(tmp_path: Path) -> None:
    phrases = LINE["piis"] | {
        "gout": {"type": "health", "relevance": "1"},
        " ": {"type": "health", "relevance": "1"},
    }
    path = write_lines(tmp_path / "test.jsonl", [LINE, LINE | {"piis": phrases}])

    (_, sample), faults = read_capid(path)

    assert faults == (
        "capid-0002: phrase 4 of 'piis' is not in it",
        "capid-0002: phrase 5 of 'piis' is not in it",
    )
    assert [entity.text for entity in sample.entities] == ["Mo", "41", "asthma"]
    assert [related.text for related in sample.related] == ["asthma"]


def test_a_line_without_question_has_nothing_related(tmp_path: Path) -> None:
    (sample,), _ = read_capid(write_lines(tmp_path / "test.jsonl", [LINE | {"question": None}]))

    assert sample.query is None
    assert sample.related == ()
    assert len(sample.entities) == 3


def test_a_line_without_phrases_has_no_subject(tmp_path: Path) -> None:
    (sample,), _ = read_capid(write_lines(tmp_path / "test.jsonl", [LINE | {"piis": {}}]))

    assert sample.subjects == ()


def test_every_type_of_capid_has_one_of_ours() -> None:
    assert len(TYPES) == 15
    assert set(TYPES.values()) == set(PiiType)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"context": None}, "record: 'context' must be a string, not null"),
        ({"question": ["Am I?"]}, "record: 'question' must be a string, not a list"),
        ({"piis": ["Mo"]}, "record: 'piis' must be an object, not a list"),
        (
            {"piis": {"Mo": {"type": "nam", "relevance": "0"}}},
            (
                "phrase 1 of 'piis': unknown CAPID type 'nam'; did you mean 'name'? "
                f"(allowed: {', '.join(TYPES)})"
            ),
        ),
        (
            {"piis": {"Mo": {"type": "name", "relevance": 1}}},
            "phrase 1 of 'piis' must have a 'type' and a 'relevance' (one of 0, 1, low, high)",
        ),
        (
            {"piis": {"Mo": {"type": "name", "relevance": "2"}}},
            "phrase 1 of 'piis' must have a 'type' and a 'relevance' (one of 0, 1, low, high)",
        ),
        (
            {"piis": {"Mo": "name"}},
            "phrase 1 of 'piis' must have a 'type' and a 'relevance' (one of 0, 1, low, high)",
        ),
    ],
)
def test_a_broken_line_is_named_and_its_text_is_not_told(
    tmp_path: Path, change: dict[str, Any], what: str
) -> None:
    path = write_lines(tmp_path / "test.jsonl", [LINE, LINE | change])

    with pytest.raises(InputFileError) as caught:
        read_capid(path)

    assert str(caught.value) == f"{path}:2: {what}"


def test_all_bad_lines_are_listed_at_once(tmp_path: Path) -> None:
    bad = LINE | {"context": None}
    path = write_lines(tmp_path / "test.jsonl", [bad, LINE, ["Mo"]])

    with pytest.raises(InputFileError) as caught:
        read_capid(path)

    assert str(caught.value) == (
        f"{path}: 2 lines cannot be read\n"
        "  line 1: record: 'context' must be a string, not null\n"
        "  line 3: a line must be a JSON object, not a list"
    )


def test_a_file_without_samples(tmp_path: Path) -> None:
    with pytest.raises(InputFileError, match=r"no samples in it$"):
        read_capid(write_lines(tmp_path / "test.jsonl", []))


@pytest.mark.parametrize(
    ("name", "samples", "faults", "without_question"),
    [("test.jsonl", 200, 2, 0), ("train.jsonl", 2107, 19, 1)],
)
def test_the_released_files(
    capid_folder: Path, name: str, samples: int, faults: int, without_question: int
) -> None:
    found, missing = read_capid(capid_folder / name)

    assert len(found) == len({sample.id for sample in found}) == samples
    assert len(missing) == faults
    assert sum(sample.query is None for sample in found) == without_question
    for sample in found:
        for entity in sample.entities:
            assert entity.spans
            assert {sample.description[a:b] for a, b in entity.spans} == {entity.text}
