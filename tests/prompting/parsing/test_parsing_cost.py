"""Inputs on which a quadratic parser or a recursive one does not come back in time."""

from __future__ import annotations

import pytest

from pii_bench.prompting.parsing import parse_detection, parse_related

SIZE = 200_000
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
