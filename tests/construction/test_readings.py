from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pii_bench.construction.readings import (
    agreement,
    disputes,
    listed_options,
    parse_answers,
    reading_sheet,
    record_readings,
)
from pii_bench.datasets.readings import Reading, load_readings, version_of
from pii_bench.datasets.sample import Related
from pii_bench.errors import InputFileError, PiiBenchError
from tests.datasets.check.samples import build

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

SAMPLE = build(
    "Ann Lee, 79, takes the 8:30.",
    {"Ann Lee": "Full Name", "79": "Age", "8:30": "Time"},
    query="Will she catch it?",
    related=[("A", "8:30")],
    sample_id="single-0001",
)
SHOWN_ID = f"single-0001.{version_of(SAMPLE)[:6]}"
"""The id of the sample as a sheet shows it."""


def reading(**changes: object) -> Reading:
    """Return a reading that agrees with gold, with some fields changed."""
    agreeing = Reading(
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
    return replace(agreeing, **changes)  # type: ignore[arg-type]


def parse(tmp_path: Path, line: str, reader: str, known: Sequence[Reading] = ()) -> list[Reading]:
    path = tmp_path / "answers.txt"
    path.write_text(line + "\n", encoding="utf-8")
    return parse_answers(path, {SAMPLE.id: SAMPLE}, known, reader)


def test_a_sheet_shows_text_query_and_entities_but_no_gold() -> None:
    first, second, third = listed_options(SAMPLE, "a")

    assert sorted([first, second, third]) == ["79", "8:30", "Ann Lee"]
    assert reading_sheet([SAMPLE], "a") == (
        f"=== {SHOWN_ID}\nAnn Lee, 79, takes the 8:30.\n"
        f"--- query\nWill she catch it?\n"
        f"--- entities\n1. {first}\n2. {second}\n3. {third}\n"
    )


def test_an_answer_becomes_a_reading(tmp_path: Path) -> None:
    number = 1 + listed_options(SAMPLE, "b").index("79")
    line = f"{SHOWN_ID} | {number} | a nurse; from Graz | yes | 3 | 4 | hm"

    (parsed,) = parse(tmp_path, line, "b")

    assert parsed == reading(
        version=version_of(SAMPLE),
        reader="b",
        needed=("79",),
        unlisted=("a nurse", "from Graz"),
        ambiguous=True,
        text=3,
        query=4,
        remark="hm",
    )


def test_a_new_version_of_a_sample_is_read_in_a_second_round(tmp_path: Path) -> None:
    line = f"{SHOWN_ID} | - | - | no | 4 | 5 |"

    (parsed,) = parse(tmp_path, line, "a", known=[reading(version="v1")])

    assert (parsed.round, parsed.needed, parsed.unlisted) == (2, (), ())


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("single-0002 | 1 | - | no | 4 | 5 |", "no answer to a sample of the sheet"),
        (f"{SHOWN_ID} | 1 | - | no | 4", "no answer to a sample of the sheet"),
        ("single-0001 | 1 | - | no | 4 | 5 |", "not the version of today"),
        (f"{SHOWN_ID} | 9 | - | no | 4 | 5 |", "the sheet lists 1 to 3"),
        (f"{SHOWN_ID} | 1 | - | maybe | 4 | 5 |", "'maybe' is neither yes nor no"),
        (f"{SHOWN_ID} | 1 | - | no | 6 | 5 |", "naturalness is 1 to 5"),
    ],
)
def test_invalid_answers_are_refused(tmp_path: Path, line: str, message: str) -> None:
    with pytest.raises(InputFileError, match=message):
        parse(tmp_path, line, "a")


def test_a_reader_s_reading_of_a_version_is_recorded_once(tmp_path: Path) -> None:
    other = reading(reader="b", needed=("79",), remark="é")

    assert record_readings("single", [reading(), other], tmp_path) == 2
    assert record_readings("single", [reading(remark="again")], tmp_path) == 0
    assert load_readings("single", tmp_path) == [reading(), other]
    assert load_readings("multi", tmp_path) == []


def test_a_version_changes_with_text_query_and_related_entities() -> None:
    changed = [
        replace(SAMPLE, query="Will she be late?"),
        replace(SAMPLE, related=(Related("A", "79"),)),
        replace(SAMPLE, description=SAMPLE.description + " Often."),
    ]

    assert len({version_of(sample) for sample in [SAMPLE, *changed]}) == 4


def test_disputes_are_differences_from_gold_and_low_scores() -> None:
    assert disputes(reading()) == []
    assert disputes(reading(needed=("79",), unlisted=("a nurse",), text=2)) == [
        "reader a needs '79' too",
        "reader a does not need '8:30'",
        "reader a finds 'a nurse' unlisted",
        "reader a gives the text 2 of 5",
    ]


def test_agreement_of_two_readers_with_gold_and_with_each_other() -> None:
    one = reading(reader="a", needed=("8:30",))
    other = reading(reader="b", needed=("79", "8:30"), ambiguous=True, unlisted=("x",), text=2)

    result = agreement([one, other])

    assert result.readings == 2
    # F1 of {8:30} against {8:30} is 1, of {79, 8:30} it is 2/3.
    assert result.f1 == pytest.approx((1 + 2 / 3) / 2)
    assert result.exact == 0.5
    # 5 of 6 decisions agree. Readers need 3 of 6, gold 2 of 6: by chance (3*2 + 3*4) / 36 agree.
    assert result.kappa_gold == pytest.approx((5 / 6 - 1 / 2) / (1 - 1 / 2))
    # 2 of 3 decisions agree. They need 1 and 2 of 3: by chance (1*2 + 2*1) / 9 agree.
    assert result.kappa_readers == pytest.approx((2 / 3 - 4 / 9) / (1 - 4 / 9))
    assert (result.ambiguous, result.unlisted, result.text, result.query) == (0.5, 50.0, 3.0, 5.0)


def test_agreement_of_one_reader_or_none() -> None:
    assert agreement([reading()]).kappa_readers is None
    with pytest.raises(PiiBenchError, match="no readings"):
        agreement([])
