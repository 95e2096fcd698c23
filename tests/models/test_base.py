from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_bench.models.base import MOST_TOKENS, Completion, Usage, is_count

anything: Any = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3)


@pytest.mark.parametrize("value", [0, 1, 2**53])
def test_counts(value: object) -> None:
    assert is_count(value)


@pytest.mark.parametrize("value", [True, False, -1, 2**53 + 1, 10**400, 7.0, "7", None, [7]])
def test_what_is_no_count(value: object) -> None:
    assert not is_count(value)


@pytest.mark.parametrize(
    ("text", "usage"),
    [
        ("32", Usage(11, 7)),
        ("32", Usage(11, 7, reasoning_tokens=6, cached_tokens=11)),
        ("32", Usage(MOST_TOKENS, MOST_TOKENS)),
        # A model that says nothing may write nothing.
        ("", Usage(11, 0)),
    ],
)
def test_usage_that_can_be_true_is_kept(text: str, usage: Usage) -> None:
    assert Completion(text, usage=usage).usage == usage


@pytest.mark.parametrize(
    ("text", "reasoning", "counts"),
    [
        ("32", None, (True, 7)),
        ("32", None, (11, False)),
        ("32", None, (-1, 7)),
        ("32", None, (11, -3035)),
        ("32", None, (10**400, 7)),
        ("32", None, (11, 2**53 + 1)),
        ("32", None, (11.5, 7)),
        ("32", None, ("11", 7)),
        ("32", None, (11, None)),
        # Nothing is asked in no tokens, and nothing is written in none.
        ("32", None, (0, 7)),
        ("", None, (0, 0)),
        ("32", None, (11, 0)),
        ("", "A place.", (11, 0)),
    ],
)
def test_usage_that_cannot_be_true_is_unknown(
    text: str, reasoning: str | None, counts: tuple[Any, Any]
) -> None:
    assert Completion(text, reasoning=reasoning, usage=Usage(*counts)).usage is None


@pytest.mark.parametrize("cached", [True, -1, 12, 10**400, "3", None])
def test_cached_tokens_outside_of_the_input_are_as_if_not_reported(cached: Any) -> None:
    usage = Completion("32", usage=Usage(11, 7, cached_tokens=cached)).usage
    assert usage == Usage(11, 7, cached_tokens=0)


@pytest.mark.parametrize("reasoning", [True, -1, 10**400, "3", None])
def test_reasoning_tokens_that_are_no_count_are_as_if_not_reported(reasoning: Any) -> None:
    usage = Completion("32", usage=Usage(11, 7, reasoning_tokens=reasoning)).usage
    assert usage == Usage(11, 7, reasoning_tokens=0)


@given(st.text(), st.builds(Usage, anything, anything, anything, anything))
def test_whatever_is_counted_a_completion_holds_counts_or_nothing(text: str, usage: Usage) -> None:
    kept = Completion(text, usage=usage).usage
    if kept is not None:
        assert all(
            map(
                is_count,
                (
                    kept.input_tokens,
                    kept.output_tokens,
                    kept.reasoning_tokens,
                    kept.cached_tokens,
                ),
            )
        )
        assert 0 <= kept.cached_tokens <= kept.input_tokens
        assert kept.output_tokens > 0 or not text
