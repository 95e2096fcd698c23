from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_bench.models.base import SKIPPED_BUDGET, TRANSIENT, CallError
from pii_bench.models.calls.retry import LONGEST_WAIT, Retry


class Highest(Random):
    """Draws the highest number that may come."""

    def uniform(self, a: float, b: float) -> float:
        return max(a, b)


def waits(retry: Retry, error: CallError) -> list[float | CallError]:
    return [retry.decide(attempt, error) for attempt in range(1, retry.attempts)]


def test_the_longest_wait_doubles_from_attempt_to_attempt_up_to_a_minute() -> None:
    retry = Retry(attempts=8, random=Highest())

    assert waits(retry, CallError("timeout")) == [2, 4, 8, 16, 32, 60, 60]


def test_five_attempts_are_made_by_default() -> None:
    retry = Retry()

    assert isinstance(retry.decide(4, CallError("timeout")), float)
    assert isinstance(retry.decide(5, CallError("timeout")), CallError)


def test_a_wait_that_the_server_asks_for_is_never_shortened() -> None:
    error = CallError("rate_limit", retry_after=30.0)

    assert waits(Retry(random=Highest()), error) == [32, 34, 38, 46]


def test_the_same_seed_draws_the_same_waits() -> None:
    first, second = (waits(Retry(random=Random(7)), CallError("timeout")) for _ in range(2))

    assert first == second
    assert len(set(first)) == 4


@pytest.mark.parametrize("kind", ["bad_request", "bad_response", "expired", SKIPPED_BUDGET])
def test_a_failure_that_will_not_pass_is_not_tried_again(kind: str) -> None:
    error = CallError(kind, "HTTP 400")

    assert Retry().decide(1, error) is error


def test_a_longer_wait_than_two_minutes_ends_the_call_and_says_so() -> None:
    outcome = Retry().decide(1, CallError("rate_limit", "HTTP 429", retry_after=3600.0))

    assert str(outcome) == (
        "rate_limit: HTTP 429; the server asks to wait 3600 s, longer than 120 s"
    )


def test_a_wait_of_two_minutes_is_waited() -> None:
    outcome = Retry(random=Highest()).decide(1, CallError("overloaded", retry_after=120.0))

    assert outcome == 122


def test_the_last_failure_tells_how_many_attempts_were_made() -> None:
    retry = Retry(attempts=3)

    assert str(retry.decide(3, CallError("timeout"))) == "timeout: 3 attempts"
    error = CallError("server_error", "HTTP 503")
    assert str(retry.decide(3, error)) == "server_error: HTTP 503; 3 attempts"


@given(
    st.sampled_from(sorted(TRANSIENT)),
    st.integers(1, 20),
    st.none() | st.floats(0, 1e6),
    st.integers(0, 100),
)
def test_no_wait_is_shorter_than_asked_or_longer_than_three_minutes(
    kind: str, attempt: int, asked: float | None, seed: int
) -> None:
    retry = Retry(attempts=20, random=Random(seed))

    outcome = retry.decide(attempt, CallError(kind, retry_after=asked))

    if isinstance(outcome, CallError):
        assert attempt == 20 or (asked or 0) > LONGEST_WAIT
    else:
        assert (asked or 0) <= outcome <= 180
