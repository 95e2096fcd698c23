from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pii_bench.construction.readings import (
    agreement,
    faults,
    parse_answers,
    record_readings,
    sheet,
    shuffled,
)
from pii_bench.datasets.readings import Reading, load_readings, version_of
from pii_bench.datasets.sample import Related, Sample
from pii_bench.errors import InputFileError, PiiBenchError
from tests.datasets.check.samples import build

if TYPE_CHECKING:
    from pathlib import Path

SAMPLE = replace(
    build("Ann Lee, 79, takes the 8:30.", {"Ann Lee": "Full Name", "79": "Age", "8:30": "Time"}),
    id="single-0001",
    query="Will she catch it?",
    related=(Related("A", "8:30"),),
)


def reading(**changes: object) -> Reading:
    first = Reading(
        id="single-0001",
        version="v1",
        reader="a",
        round=1,
        options=("79", "8:30", "Ann Lee"),
        gold=("8:30",),
        needed=("8:30",),
        unlisted=(),
        ambiguous=False,
        text=4,
        query=5,
    )
    return replace(first, **changes)  # type: ignore[arg-type]


ITEM = f"single-0001.{version_of(SAMPLE)[:6]}"
"""As a sheet names the sample."""


def answers(tmp_path: Path, line: str) -> Path:
    path = tmp_path / "answers.txt"
    path.write_text(line + "\n", encoding="utf-8")
    return path


def test_a_sheet_shows_text_query_and_entities_and_no_gold() -> None:
    shown = sheet([SAMPLE], "a")

    listed = "\n".join(f"{n}. {text}" for n, text in enumerate(shuffled(SAMPLE, "a"), start=1))
    assert shown == (
        f"=== {ITEM}\nAnn Lee, 79, takes the 8:30.\n"
        f"--- query\nWill she catch it?\n--- entities\n{listed}\n"
    )


def test_an_answer_becomes_a_reading(tmp_path: Path) -> None:
    number = shuffled(SAMPLE, "b").index("79") + 1
    path = answers(tmp_path, f"{ITEM} | {number} | a nurse; from Graz | yes | 3 | 4 | hm")

    (found,) = parse_answers(path, {SAMPLE.id: SAMPLE}, [], "b")

    assert found == Reading(
        id="single-0001",
        version=version_of(SAMPLE),
        reader="b",
        round=1,
        options=("79", "8:30", "Ann Lee"),
        gold=("8:30",),
        needed=("79",),
        unlisted=("a nurse", "from Graz"),
        ambiguous=True,
        text=3,
        query=4,
        remark="hm",
    )


def test_a_mended_sample_is_read_in_a_second_round(tmp_path: Path) -> None:
    path = answers(tmp_path, f"{ITEM} | - | - | no | 4 | 5 |")

    (found,) = parse_answers(path, {SAMPLE.id: SAMPLE}, [reading()], "a")

    assert (found.round, found.needed, found.unlisted) == (2, (), ())


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("single-0002 | 1 | - | no | 4 | 5 |", "no answer to a sample of the sheet"),
        (f"{ITEM} | 1 | - | no | 4", "no answer to a sample of the sheet"),
        ("single-0001 | 1 | - | no | 4 | 5 |", "not the version of today"),
        (f"{ITEM} | 9 | - | no | 4 | 5 |", "the sheet lists 1 to 3"),
        (f"{ITEM} | 1 | - | maybe | 4 | 5 |", "'maybe' is neither yes nor no"),
        (f"{ITEM} | 1 | - | no | 6 | 5 |", "naturalness is 1 to 5"),
    ],
)
def test_a_line_that_is_no_answer(tmp_path: Path, line: str, message: str) -> None:
    with pytest.raises(InputFileError, match=message):
        parse_answers(answers(tmp_path, line), {SAMPLE.id: SAMPLE}, [], "a")


def test_readings_are_kept_raw_and_once(tmp_path: Path) -> None:
    other = reading(reader="b", needed=("79",), remark="é")

    assert record_readings("single", [reading(), other], tmp_path) == 2
    assert record_readings("single", [reading(remark="again")], tmp_path) == 0
    assert load_readings("single", tmp_path) == [reading(), other]
    assert load_readings("multi", tmp_path) == []


def test_a_version_changes_with_text_query_and_what_is_needed() -> None:
    changed: list[Sample] = [
        replace(SAMPLE, query="Will she be late?"),
        replace(SAMPLE, related=(Related("A", "79"),)),
        replace(SAMPLE, description=SAMPLE.description + " Often."),
    ]

    assert len({version_of(sample) for sample in [SAMPLE, *changed]}) == 4


def test_what_keeps_a_sample_from_passing() -> None:
    assert faults(reading()) == []
    assert faults(reading(needed=("79",), unlisted=("a nurse",), text=2)) == [
        "reader a needs '79' too",
        "reader a does not need '8:30'",
        "reader a finds 'a nurse' unlisted",
        "reader a gives the text 2 of 5",
    ]


def test_agreement_by_hand() -> None:
    one = reading()
    other = reading(reader="b", needed=("79", "8:30"), ambiguous=True, unlisted=("x",), text=2)

    found = agreement([one, other])

    assert found.readings == 2
    # F1 of {8:30} is 1, of {79, 8:30} against {8:30} it is 2/3.
    assert found.f1 == pytest.approx((1 + 2 / 3) / 2)
    assert found.exact == 0.5
    # Of 6 decisions 5 agree; 3/6 and 2/6 are yes: chance is 1/6 + 2/6.
    assert found.kappa_gold == pytest.approx((5 / 6 - 1 / 2) / (1 - 1 / 2))
    # Between the readers 2 of 3 agree; 1/3 and 2/3 are yes: chance is 4/9.
    assert found.kappa_readers == pytest.approx((2 / 3 - 4 / 9) / (1 - 4 / 9))
    assert (found.ambiguous, found.unlisted, found.text, found.query) == (0.5, 50.0, 3.0, 5.0)


def test_agreement_of_one_reader_has_no_kappa_of_readers() -> None:
    assert agreement([reading()]).kappa_readers is None


def test_agreement_of_nothing_is_refused() -> None:
    with pytest.raises(PiiBenchError, match="no readings"):
        agreement([])
