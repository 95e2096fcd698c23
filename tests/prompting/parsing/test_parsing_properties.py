from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from pii_bench.models.base import Finish
from pii_bench.prompting.parsing import (
    ParsedDetection,
    ParsedRelated,
    Stage,
    parse_detection,
    parse_related,
)
from pii_bench.tasks import Status

FRAGMENTS = [
    *"[]{}()\"'`,:;=\\-#*\n 1a｛，：“”«",
    *("### Answer:", "**Answer**", "Subject1", "Subject{2}", "Subject 1:", "<think>", "</think>"),
    *('"a"', '"PER"', "PER", "'b'", "null", "None", "32", "2,180", "- ", "1. ", "```json", "//"),
    *('"text"', '"type"', '"entities"', '"answer"', "->", "\\u00e9", "\\ud800", "\ud800", "\u200b"),
]

texts = st.text(st.characters(exclude_categories=("Cs", "Cc"))).filter(str.strip)
types = st.sampled_from(["PER", "CODE", "LOC", "ORG", "DEM", "DATETIME", "QUANTITY"])
answers = st.text() | st.lists(st.sampled_from(FRAGMENTS), max_size=40).map("".join)
finishes = st.sampled_from(Finish)


def check(payload: object, status: Status, repairs: tuple[str, ...]) -> None:
    assert (payload is not None) == status.answered
    assert bool(repairs) == (status is Status.REPAIRED)
    assert list(repairs) == [stage.value for stage in Stage if stage.value in repairs]
    json.dumps(payload, ensure_ascii=False).encode()


@given(answers, finishes)
def test_related_never_raises_and_keeps_its_promises(answer: str, finish: Finish) -> None:
    parsed = parse_related(answer, finish)
    check(parsed.texts, parsed.status, parsed.repairs)


@given(answers, finishes)
def test_detection_never_raises_and_keeps_its_promises(answer: str, finish: Finish) -> None:
    parsed = parse_detection(answer, finish)
    check(parsed.subjects, parsed.status, parsed.repairs)


@given(st.lists(texts), st.booleans(), st.none() | st.integers(1, 4), finishes)
def test_related_texts_survive_the_round_trip(
    items: list[str], ascii_only: bool, indent: int | None, finish: Finish
) -> None:
    if finish in {Finish.FILTER, Finish.REFUSAL}:
        return
    written = json.dumps(items, ensure_ascii=ascii_only, indent=indent)
    parsed = parse_related(f"### Thought: she asks.\n### Answer: {written}", finish)
    assert parsed == ParsedRelated(tuple(items), Status.OK)


@given(st.lists(st.dictionaries(texts, types), min_size=1), st.booleans())
def test_detection_subjects_survive_the_round_trip(
    subjects: list[dict[str, str]], ascii_only: bool
) -> None:
    lines = [
        f"Subject{number}{json.dumps(subject, ensure_ascii=ascii_only)}"
        for number, subject in enumerate(subjects, start=1)
    ]
    expected = tuple(tuple(subject.items()) for subject in subjects)
    assert parse_detection("\n".join(lines)) == ParsedDetection(expected, Status.OK)


def test_every_stage_has_a_kebab_case_name_and_a_sentence() -> None:
    for stage in Stage:
        assert stage.value.replace("-", "").isalpha()
        assert stage.value.islower()
        assert stage.sentence.endswith(".")
