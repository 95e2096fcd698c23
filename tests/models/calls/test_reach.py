from __future__ import annotations

import pytest

from pii_bench.errors import ProviderRefusedError
from pii_bench.models.base import SKIPPED_BUDGET, CallError
from pii_bench.models.calls.pace import Reach

ENDPOINT = "http://127.0.0.1:8080/v1"


def test_calls_in_a_row_without_a_connection_end_the_run() -> None:
    reach = Reach(most=3)
    reach.failed(CallError("connection"), ENDPOINT)
    reach.failed(CallError("connection"), ENDPOINT)

    with pytest.raises(ProviderRefusedError, match=r"no connection to http://127\.0\.0\.1:8080/v1"):
        reach.failed(CallError("connection"), ENDPOINT)


def test_an_answer_between_them_begins_the_row_again() -> None:
    reach = Reach(most=2)
    for _ in range(5):
        reach.failed(CallError("connection"), ENDPOINT)
        reach.heard()


@pytest.mark.parametrize("kind", ["server_error", "rate_limit", "timeout", "bad_request"])
def test_who_fails_otherwise_is_there(kind: str) -> None:
    reach = Reach(most=2)
    for _ in range(5):
        reach.failed(CallError("connection"), ENDPOINT)
        reach.failed(CallError(kind), ENDPOINT)


def test_a_call_that_was_not_made_tells_nothing() -> None:
    reach = Reach(most=2)
    reach.failed(CallError("connection"), ENDPOINT)
    reach.failed(CallError(SKIPPED_BUDGET), ENDPOINT)
    with pytest.raises(ProviderRefusedError):
        reach.failed(CallError("connection"), ENDPOINT)


def test_half_a_minute_without_a_connection_ends_the_run() -> None:
    reach = Reach(patience=30.0)
    reach.attempted(CallError("connection"), ENDPOINT, now=100.0)
    reach.attempted(CallError("connection"), ENDPOINT, now=129.9)

    with pytest.raises(ProviderRefusedError, match=r"no connection to http://127.* for 31 s: "):
        reach.attempted(CallError("connection"), ENDPOINT, now=131.0)


@pytest.mark.parametrize("kind", ["server_error", "timeout"])
def test_an_attempt_that_fails_otherwise_begins_the_time_again(kind: str) -> None:
    reach = Reach(patience=30.0)
    for time in range(0, 200, 20):
        reach.attempted(CallError("connection"), ENDPOINT, now=time)
        reach.attempted(CallError(SKIPPED_BUDGET), ENDPOINT, now=time + 1)
        reach.attempted(CallError(kind), ENDPOINT, now=time + 2)


def test_a_model_without_an_endpoint_is_named_too() -> None:
    with pytest.raises(ProviderRefusedError, match="no connection to the model"):
        Reach(most=1).failed(CallError("connection"), None)
