"""What holds for every text, however long or broken."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_bench.models.base import Finish
from pii_bench.prompting.parsing.answers import (
    Parsed,
    parse_structured_detection,
    parse_structured_labelled,
    parse_structured_related,
)
from pii_bench.prompting.parsing.detection import parse_detection
from pii_bench.prompting.parsing.labelled import parse_labelled
from pii_bench.prompting.parsing.reader import read_literal
from pii_bench.prompting.parsing.texts import parse_related, parse_rewriting
from pii_bench.tasks import Status
from pii_bench.taxonomy import taxonomy

FRAGMENTS = [
    *"[]{}()\"'`,:;=\\-#*\n 1a｛，：“”«",
    *("### Answer:", "**Answer**", "Subject1", "Subject{2}", "Subject 1:", "<think>", "</think>"),
    *('"a"', '"PER"', "PER", "'b'", "null", "None", "32", "2,180", "- ", "1. ", "```json", "//"),
    *('{"PII": ', '"AGE"', '"subjects"', "### Text:"),
    *('"text"', '"type"', '"entities"', '"answer"', "->", "\\u00e9", "\\ud800", "\ud800", "\u200b"),
]

LABELS = taxonomy("ai4privacy")
texts = st.text(st.characters(exclude_categories=("Cs", "Cc"))).filter(str.strip)
types = st.sampled_from(["PER", "CODE", "LOC", "ORG", "DEM", "DATETIME", "QUANTITY"])
answers = st.text() | st.lists(st.sampled_from(FRAGMENTS), max_size=40).map("".join)
finishes = st.sampled_from(Finish)


def check(parsed: Parsed[Any]) -> None:
    assert (parsed.payload is not None) == parsed.status.answered
    assert parsed.status is Status.REPAIRED or not parsed.cut
    json.dumps(parsed.payload, ensure_ascii=False).encode()


@given(answers, finishes)
def test_no_text_raises_and_the_status_says_whether_there_is_an_answer(
    answer: str, finish: Finish
) -> None:
    rewriting = parse_rewriting(answer, finish)
    assert rewriting.payload is None or rewriting.payload.strip()
    for parsed in (
        rewriting,
        parse_related(answer, finish),
        parse_detection(answer, finish),
        parse_labelled(answer, LABELS, finish),
    ):
        check(parsed)
    for structured in (
        parse_structured_detection(answer, finish),
        parse_structured_labelled(answer, LABELS, finish),
        parse_structured_related(answer, finish),
    ):
        assert structured.status is not Status.REPAIRED


@given(st.lists(texts), st.booleans(), st.none() | st.integers(1, 4), finishes)
def test_related_texts_survive_the_round_trip(
    items: list[str], ascii_only: bool, indent: int | None, finish: Finish
) -> None:
    if finish in {Finish.FILTER, Finish.REFUSAL}:
        return
    written = json.dumps(items, ensure_ascii=ascii_only, indent=indent)
    parsed = parse_related(f"### Thought: she asks.\n### Answer: {written}", finish)
    assert parsed == Parsed(tuple(items), Status.OK)


@given(st.lists(st.dictionaries(texts, types), min_size=1), st.booleans())
def test_detection_subjects_survive_the_round_trip(
    subjects: list[dict[str, str]], ascii_only: bool
) -> None:
    lines = [
        f"Subject{number}{json.dumps(subject, ensure_ascii=ascii_only)}"
        for number, subject in enumerate(subjects, start=1)
    ]
    expected = tuple(tuple(subject.items()) for subject in subjects)
    assert parse_detection("\n".join(lines)) == Parsed(expected, Status.OK)


SIZE = 50_000
LARGE = 1_000_000

UNITS = [
    *"[{(\"'\\“`,:-=* \n#|",
    *("### Answer:", "### Answer: [\n", "**answer", "# ", "answer ", "<think>", "</think>"),
    *("Subject1{", "Subject1{\n", "Subject 1\n", "subject ", "Subject{", 'Subject1{"a":"PER"}\nx '),
    *("- ", "- a\n", "- a: PER\n", "a (PER), ", "[]", '["a"]', '["a', "['a ", '["a"b', "[- "),
    *('"a" ', '"a""b" ', '"a\n', '\\"', '[\\"', '"\\u', '{"a":', "{a:b ", "a: ", "1,", "[1,234"),
    *("```", "```json", "no ", "none ", "I can't ", "sorry ", "\ud800", "\u200b", "【", "："),
]
BEFORE = ["", "### Answer: ", '### Answer: ["', "Subject1{", "Subject 1\n"]


def repeated(unit: str, size: int) -> str:
    return unit * (size // len(unit))


@pytest.mark.parametrize("unit", UNITS)
def test_long_repetition_is_read_in_linear_time(unit: str) -> None:
    answer = repeated(unit, SIZE)
    assert parse_related(f"### Answer: [{answer}").status.scored
    assert parse_detection(f"Subject1{{{answer}").status.scored


@pytest.mark.slow
@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("unit", UNITS)
def test_very_long_repetition_is_read_in_linear_time(before: str, unit: str) -> None:
    answer = before + repeated(unit, LARGE)
    assert parse_related(answer).status.scored
    assert parse_detection(answer).status.scored


@pytest.mark.parametrize("text", ["[\U00050d9c", "[\u0378", '{"a": \u0378', "[a:\u0378"])
def test_what_the_end_cuts_off_is_dropped_whatever_character_it_is(text: str) -> None:
    """On Python 3.11.2, that of Debian 12, the reader once never came to an end here."""
    found = read_literal(text, 0, len(text))

    assert (found.end, found.closed) == (len(text), False)
