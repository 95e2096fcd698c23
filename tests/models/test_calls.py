from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import date
from random import Random
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_bench.errors import ProviderRefusedError, ProviderUnavailableError
from pii_bench.models.base import SKIPPED_BUDGET, TRANSIENT, CallError, Completion, Usage
from pii_bench.models.budget import Ledger
from pii_bench.models.calls import (
    LONGEST_WAIT,
    CallPolicy,
    ConnectionWatch,
    GuardedModel,
    Pace,
    asked_wait,
    next_wait,
)
from pii_bench.models.catalog import Price
from tests.models.simulated import DOLLAR_A_TOKEN, TimedModel, make_request, now, run

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pii_bench.models.base import Model, Request


class Highest(Random):
    """Always draws the maximum."""

    def uniform(self, a: float, b: float) -> float:
        return max(a, b)


class NoJitter(Random):
    """Always draws the minimum."""

    def uniform(self, a: float, b: float) -> float:
        return min(a, b)


@pytest.mark.parametrize(("asked", "waits"), [(None, [2, 4, 8, 16]), (120.0, [122, 124, 128, 136])])
def test_the_longest_wait_after_that_of_the_server_doubles(
    asked: float | None, waits: list[float]
) -> None:
    error = CallError("overloaded", retry_after=asked)

    assert [next_wait(attempt, error, Highest()) for attempt in range(1, 5)] == waits


@pytest.mark.parametrize("kind", ["bad_request", "bad_response", "expired", SKIPPED_BUDGET])
def test_permanent_failures_are_not_retried(kind: str) -> None:
    error = CallError(kind, "HTTP 400")

    assert next_wait(1, error, Random()) is error


@given(st.sampled_from(sorted(TRANSIENT)), st.integers(1, 5), st.none() | st.floats(0, 1e6))
def test_no_wait_is_shorter_than_asked_or_much_longer(
    kind: str, attempt: int, asked: float | None
) -> None:
    outcome = next_wait(attempt, CallError(kind, retry_after=asked), Random())

    if isinstance(outcome, CallError):
        assert attempt == 5 or (asked or 0) > LONGEST_WAIT
    else:
        assert (asked or 0) <= outcome <= LONGEST_WAIT + 16


ENDPOINT = "http://127.0.0.1:8080/v1"


LOST = ("connection", 0.0, True)


@pytest.mark.parametrize(
    ("failures", "message"),
    [
        # Neither an attempt that is retried nor a skipped call counts.
        (
            [LOST, LOST, ("connection", 0.0, False), (SKIPPED_BUDGET, 0.0, True), LOST],
            f"no connection to {ENDPOINT} in 3 calls in a row: check that it is up",
        ),
        ([LOST, LOST, ("connection", 0.0, False), (SKIPPED_BUDGET, 0.0, True)], None),
        (
            [("connection", time, False) for time in (100.0, 129.9, 131.0)],
            f"no connection to {ENDPOINT} for 31 s: check that it is up",
        ),
        # Any other failure is a response.
        (
            [
                (kind, time, True)
                for time in range(0, 100, 20)
                for kind in ("connection", "timeout")
            ],
            None,
        ),
    ],
)
def test_a_run_ends_after_three_calls_or_half_a_minute_without_a_connection(
    failures: list[tuple[str, float, bool]], message: str | None
) -> None:
    watch = ConnectionWatch()

    def fail_all() -> None:
        for kind, time, last in failures:
            watch.failed(CallError(kind), ENDPOINT, time, last=last)

    if message is None:
        fail_all()
    else:
        with pytest.raises(ProviderUnavailableError, match=message):
            fail_all()


def test_the_model_is_named_where_there_is_no_endpoint() -> None:
    watch = ConnectionWatch()
    error = CallError("connection")
    watch.failed(error, None, 0.0, last=False)

    with pytest.raises(ProviderUnavailableError, match=r"^no connection to the model for 30 s"):
        watch.failed(error, None, 30.0, last=False)


def test_a_response_resets_the_count() -> None:
    watch = ConnectionWatch()
    for _ in range(5):
        for _ in range(2):
            watch.failed(CallError("connection"), None, 0.0, last=True)
        watch.connected()


ANSWER = Completion("yes", usage=Usage(10, 1))


def guard(
    model: Model,
    *,
    limit: int = 8,
    cap: float | None = None,
    requests: float | None = None,
    random: Random | None = None,
) -> GuardedModel:
    pace, ledger = Pace(limit, requests), Ledger(DOLLAR_A_TOKEN, cap)
    return GuardedModel(model, pace, ledger, random=random or NoJitter())


def script(*outcomes: Completion | CallError | Exception) -> Callable[[int], Completion]:
    """Return a function from the number of a call to its outcome; the last one repeats."""

    def answer(number: int) -> Completion:
        outcome = outcomes[min(number, len(outcomes) - 1)]
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    return answer


async def ask(model: GuardedModel, requests: Sequence[Request]) -> list[Completion | BaseException]:
    return await asyncio.gather(
        *(model.complete(request) for request in requests), return_exceptions=True
    )


def test_name_identity_and_endpoint_are_those_of_the_inner_model() -> None:
    inner = TimedModel()
    model = guard(inner)

    assert (model.name, model.identity, model.endpoint) == (
        "fake/timed",
        {"endpoint": "https://models.example/v1"},
        "https://models.example/v1",
    )
    run(model.close())
    assert inner.closed


def test_an_answer_is_unchanged_and_paid() -> None:
    model = guard(TimedModel(script(ANSWER)))

    answer = run(model.complete(make_request()))

    assert answer == ANSWER
    assert answer.seconds == 1
    assert model.ledger.spent_usd == 11


def test_the_third_call_without_a_connection_ends_the_run() -> None:
    inner = TimedModel(script(CallError("connection")))
    outcomes = run(ask(guard(inner), [make_request(f"s{n}") for n in range(6)]))

    assert [type(outcome) for outcome in outcomes] == [CallError] * 2 + [
        ProviderUnavailableError
    ] * 4
    assert "https://models.example/v1" in str(outcomes[2])


@pytest.mark.parametrize("seconds", [0.0, 10.0])
def test_a_dead_server_ends_a_run_within_a_minute(seconds: float) -> None:
    """With one call at a time, the longest waits, and slow attempts."""

    inner = TimedModel(script(CallError("connection")), seconds=seconds)
    model = guard(inner, limit=1, random=Highest())

    async def ask_in_turn() -> None:
        for number in range(100):
            with suppress(CallError):
                await model.complete(make_request(f"s{number}"))

    async def scenario() -> float:
        with pytest.raises(ProviderRefusedError):
            await ask_in_turn()
        return now()

    assert 30 <= run(scenario()) <= 60


def test_the_last_error_does_not_reference_earlier_ones() -> None:
    inner = TimedModel(script(CallError("timeout")))

    with pytest.raises(CallError, match="timeout: 5 attempts") as caught:
        run(guard(inner).complete(make_request()))

    assert len(inner.asked) == 5
    assert caught.value.__context__ is None


def test_a_refusal_is_not_retried_and_costs_nothing() -> None:
    inner = TimedModel(script(ProviderRefusedError("no quota")))
    model = guard(inner)

    with pytest.raises(ProviderRefusedError, match="no quota"):
        run(model.complete(make_request()))

    assert len(inner.asked) == 1
    assert model.ledger.spent_usd == 0
    assert model.pace.in_flight == 0


@pytest.mark.parametrize(
    ("kind", "usd"),
    [
        ("rate_limit", 0),
        ("overloaded", 0),
        ("bad_request", 0),
        ("timeout", 600),
        ("connection", 600),
        ("server_error", 600),
        ("bad_response", 600),
    ],
)
def test_a_failure_that_may_have_been_charged_costs_the_most(kind: str, usd: float) -> None:
    model = guard(TimedModel(script(CallError(kind), CallError("bad_request"))))

    with pytest.raises(CallError, match=r"^bad_re(quest|sponse)$"):
        run(model.complete(make_request()))

    assert model.ledger.spent_usd == usd


def test_a_cancelled_call_costs_the_most_and_frees_its_slot() -> None:
    model = guard(TimedModel())

    async def scenario() -> None:
        task = asyncio.create_task(model.complete(make_request()))
        await asyncio.sleep(0.5)
        task.cancel()
        await asyncio.wait([task])

    run(scenario())
    assert model.ledger.spent_usd == 600
    assert model.pace.in_flight == 0


def test_a_call_that_is_cancelled_before_it_is_sent_costs_nothing() -> None:
    inner = TimedModel()
    model = guard(inner, limit=1)

    async def scenario() -> None:
        first, second = (
            asyncio.create_task(model.complete(make_request(name))) for name in ("s1", "s2")
        )
        await asyncio.sleep(0.5)
        assert model.ledger.reserved_usd == 1200
        second.cancel()
        await asyncio.wait([second])
        assert model.ledger.reserved_usd == 600
        await first

    run(scenario())
    assert inner.asked == ["s1"]
    assert model.ledger.spent_usd == 11


def test_a_waiting_retry_has_no_slot() -> None:
    inner = TimedModel(script(CallError("server_error", retry_after=60.0), ANSWER))

    answers = run(ask(guard(inner, limit=1), [make_request("s1"), make_request("s2")]))

    assert answers == [ANSWER, ANSWER]
    assert (inner.asked, inner.asked_at) == (["s1", "s2", "s1"], [0, 1, 61])


def test_refusals_lower_the_concurrency_until_all_requests_are_answered() -> None:
    """With a server that accepts two concurrent calls."""

    class Busy(TimedModel):
        async def complete(self, request: Request) -> Completion:
            if self.in_flight >= 2:
                self.asked.append(request.sample_id)
                raise CallError("rate_limit", retry_after=1.0)
            return await super().complete(request)

    inner = Busy()
    model = guard(inner, limit=8)

    answers = run(ask(model, [make_request(str(n)) for n in range(40)]))

    assert all(isinstance(answer, Completion) for answer in answers)
    assert inner.peak == 2


def test_a_wait_longer_than_two_minutes_ends_all_calls_until_it_is_over() -> None:
    inner = TimedModel(script(CallError("rate_limit", "HTTP 429", retry_after=3600.0), ANSWER))
    model = guard(inner, limit=1)

    async def scenario() -> tuple[list[Completion | BaseException], Completion]:
        refused = await ask(model, [make_request(str(n)) for n in range(3)])
        await asyncio.sleep(3500)
        return refused, await model.complete(make_request())

    refused, answer = run(scenario())
    waits = "the server asks to wait 3600 s, longer than 120 s"
    assert [str(error) for error in refused] == [
        f"rate_limit: HTTP 429; {waits}",
        f"rate_limit: not sent; {waits}",
        f"rate_limit: not sent; {waits}",
    ]
    assert {asked_wait(str(error)) for error in refused} == {3600}
    assert asked_wait("HTTP 429; 5 attempts") == 0
    assert (answer, inner.asked_at) == (ANSWER, [0, 3601])


def test_after_closing_calls_wait_for_each_other_in_another_event_loop() -> None:
    # The first call is made, the second waits for its end, the third for room below the cap.
    model = guard(TimedModel(), limit=1, cap=1300.0)

    async def scenario() -> list[Completion | BaseException]:
        answers = await ask(model, [make_request(str(n)) for n in range(3)])
        await model.close()
        return answers

    answers = [*run(scenario()), *run(scenario())]

    assert [answer.text for answer in answers if isinstance(answer, Completion)] == ["yes"] * 6


def test_calls_beyond_the_cap_are_skipped() -> None:
    inner = TimedModel(script(Completion("yes", usage=Usage(100, 50))))
    model = guard(inner, cap=1000.0)

    answers = run(ask(model, [make_request(str(n)) for n in range(10)]))

    # 150 each: after three calls 550 are left, less than the 600 that one may cost.
    assert len(inner.asked) == 3
    assert model.ledger.spent_usd == 450
    skipped = [answer for answer in answers if isinstance(answer, CallError)]
    assert [answer.kind for answer in skipped] == [SKIPPED_BUDGET] * 7


def test_skipped_calls_do_not_wait_for_the_pace() -> None:
    model = guard(TimedModel(), requests=1, cap=599.0)

    async def scenario() -> float:
        await ask(model, [make_request(str(n)) for n in range(50)])
        return now()

    assert run(scenario()) == 0


def test_all_requests_are_answered_after_a_minute_of_refusals() -> None:
    class Exhausted(TimedModel):
        async def complete(self, request: Request) -> Completion:
            if now() < 60:
                raise CallError("rate_limit", "HTTP 429")
            return await super().complete(request)

    answers = run(ask(guard(Exhausted(), limit=8), [make_request(str(n)) for n in range(30)]))

    assert all(isinstance(answer, Completion) for answer in answers)


LISTED: Final = Price(2.0, 10.0, date(2026, 1, 1), "the table")
OWN: Final = Price(1.0, 5.0, date(2026, 3, 1), "--price")


@pytest.mark.parametrize(
    ("policy", "starts"),
    [
        (CallPolicy(concurrency=2), [0, 0, 1, 1]),
        (CallPolicy(requests_per_minute=30), [0, 2, 4, 6]),
        # A call uses more than one second of tokens: the next one waits for them.
        (CallPolicy(tokens_per_minute=60), [0, 11, 22, 33]),
    ],
)
def test_the_limits_of_the_user_are_kept(policy: CallPolicy, starts: list[float]) -> None:
    model = TimedModel()

    async def all_at_once() -> None:
        guarded = policy.guard(model, None)
        await asyncio.gather(*(guarded.complete(make_request(f"s{n}")) for n in range(4)))

    run(all_at_once())
    assert model.asked_at == pytest.approx(starts)


@pytest.mark.parametrize(
    ("own", "listed", "price"),
    [(OWN, LISTED, OWN), (None, LISTED, LISTED), (OWN, None, OWN), (None, None, None)],
)
def test_the_price_of_the_user_overrides_the_table(
    own: Price | None, listed: Price | None, price: Price | None
) -> None:
    guarded = CallPolicy(price=own).guard(TimedModel(), listed)

    assert guarded.ledger.price == price


def test_the_cap_of_the_user_is_kept() -> None:
    # A call may take 600 tokens.
    guarded = CallPolicy(max_usd=599.0).guard(TimedModel(), DOLLAR_A_TOKEN)

    with pytest.raises(CallError, match=SKIPPED_BUDGET):
        run(guarded.complete(make_request()))
