from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_bench.models.base import AnswerSchema, Message
from pii_bench.models.calls.tokens import Range, input_tokens, output_tokens
from pii_bench.prompting.strategies import STRATEGIES
from tests.models.calls.simulated import make_request


def test_a_token_of_input_has_five_bytes_or_three_and_a_half_or_one() -> None:
    # 700 / 5; 700 / 3.5 + 10 for the turns; 700 / 1 + 500 for what a provider adds.
    assert input_tokens(make_request(text="a" * 700)) == Range(140, 210, 1200)


def test_every_turn_counts() -> None:
    request = make_request(text="a" * 350)
    longer = replace(request, messages=(Message("system", "b" * 350), *request.messages))

    assert input_tokens(longer) == Range(140, 210, 1200)


def test_bytes_count_not_characters() -> None:
    assert input_tokens(make_request(text="例" * 70)) == Range(42, 70, 710)


def test_a_schema_is_part_of_the_input() -> None:
    schema = AnswerSchema("answer", {"a": "b" * 91})  # {"a": "…"}: 9 characters around

    request = replace(make_request(), schema=schema)

    assert input_tokens(request) == Range(20, 39, 600)


def test_a_lone_surrogate_can_be_counted() -> None:
    assert input_tokens(make_request(text="\ud800")).high == 503


def test_what_detection_writes_grows_with_the_text() -> None:
    # 1000 * 0.05 / 2.5 and 1000 * 0.15 / 2.5
    request = make_request(text="a" * 1000, prompt="detection", max_tokens=2048)

    assert output_tokens(request) == Range(20, 60, 2048)


@pytest.mark.parametrize(
    ("prompt", "low", "expected"),
    [
        ("naive", 5, 40),
        ("naive-choice", 5, 40),
        ("self-cot", 50, 250),
        ("auto-cot", 50, 200),
        ("ps-cot", 100, 400),
        ("self-consistency", 150, 700),
        ("self-consistency-vote", 50, 250),
        ("json", 10, 150),
        ("json+ai4privacy+5-shot", 10, 150),
        ("naive+schema", 5, 40),
        ("of-somebody-else", 1, 500),
    ],
)
def test_what_a_strategy_writes_does_not_depend_on_the_text(
    prompt: str, low: int, expected: int
) -> None:
    request = make_request(text="a" * 1000, prompt=prompt, max_tokens=2048)

    assert output_tokens(request) == Range(low, expected, 2048)


def test_every_strategy_has_its_own_figure() -> None:
    unknown = output_tokens(make_request(prompt="of-somebody-else", max_tokens=2048))

    for name in STRATEGIES:
        assert output_tokens(make_request(prompt=name, max_tokens=2048)) != unknown


def test_reasoning_counts_as_output() -> None:
    request = make_request(max_tokens=2048)

    assert output_tokens(request, reasons=True) == Range(105, 1040, 2048)


def test_no_answer_is_longer_than_allowed() -> None:
    assert output_tokens(make_request(max_tokens=30)) == Range(5, 30, 30)


@given(
    st.text(max_size=300),
    st.sampled_from(["detection", *STRATEGIES, "other"]),
    st.integers(1, 3000),
    st.booleans(),
)
def test_low_expected_and_high_are_in_order(
    text: str, prompt: str, max_tokens: int, reasons: bool
) -> None:
    request = make_request(text=text, prompt=prompt, max_tokens=max_tokens)

    for tokens in (input_tokens(request), output_tokens(request, reasons=reasons)):
        assert 0 <= tokens.low <= tokens.expected <= tokens.high


def test_a_text_that_is_written_anew_grows_with_the_text() -> None:
    told = output_tokens(make_request(text="a" * 3500, prompt="rewrite", max_tokens=2048))

    assert (told.low, told.expected, told.high) == (50, 400, 2048)
