from __future__ import annotations

import asyncio
from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING

import pytest

from pii_bench.errors import ProviderRefusedError
from pii_bench.models.base import SKIPPED_BUDGET, CallError, Completion, Usage
from pii_bench.models.calls.budget import Ledger
from pii_bench.models.calls.guarded import GuardedModel
from pii_bench.models.calls.pace import AdaptiveLimit, Pace, RateLimit, Retry
from tests.models.calls.simulated import DOLLAR_A_TOKEN, TimedModel, make_request, now, run

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pii_bench.models.base import Model, Request

ANSWER = Completion("yes", usage=Usage(10, 1))


class NoJitter(Random):
    """Waits no longer than the server asks."""

    def uniform(self, a: float, b: float) -> float:
        return min(a, b)


class LongestWaits(Random):
    """Waits as long as it may."""

    def uniform(self, a: float, b: float) -> float:
        return max(a, b)


def guard(
    model: Model, *, limit: int = 8, ledger: Ledger | None = None, rate: RateLimit | None = None
) -> GuardedModel:
    return GuardedModel(
        model,
        retry=Retry(random=NoJitter()),
        pace=Pace(AdaptiveLimit(limit), rate),
        ledger=ledger or Ledger(DOLLAR_A_TOKEN),
    )


def script(*outcomes: Completion | CallError | Exception) -> Callable[[int], Completion]:
    """The outcome of each call; the last one's for those that follow."""

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


def test_it_is_named_and_told_apart_as_the_model_in_it() -> None:
    inner = TimedModel()
    model = guard(inner)

    assert (model.name, model.identity, model.endpoint) == (
        "fake/timed",
        {"endpoint": "https://models.example/v1"},
        "https://models.example/v1",
    )
    run(model.close())
    assert inner.closed


def test_an_answer_is_given_as_it_came_and_paid() -> None:
    model = guard(TimedModel(script(ANSWER)))

    answer = run(model.complete(make_request()))

    assert answer == ANSWER
    assert answer.seconds == 1
    assert model.ledger.spent_usd == 11


def test_a_failure_that_may_pass_is_tried_again() -> None:
    inner = TimedModel(script(CallError("overloaded", "HTTP 529"), ANSWER))
    model = guard(inner)

    assert run(model.complete(make_request())) == ANSWER
    assert model.ledger.totals.calls == 2
    assert model.ledger.spent_usd == 11


def test_the_wait_that_the_server_asks_for_is_waited() -> None:
    inner = TimedModel(script(CallError("server_error", retry_after=20.0), ANSWER))

    run(guard(inner).complete(make_request()))

    assert inner.asked_at == [0, 21]


def test_nothing_is_tried_for_ever() -> None:
    inner = TimedModel(script(CallError("timeout")))

    with pytest.raises(CallError, match="timeout: 5 attempts"):
        run(guard(inner).complete(make_request()))

    assert len(inner.asked) == 5


def test_where_nobody_is_the_third_call_is_the_last() -> None:
    inner = TimedModel(script(CallError("connection")))
    outcomes = run(ask(guard(inner), [make_request(f"s{n}") for n in range(6)]))

    assert [type(outcome) for outcome in outcomes] == [CallError] * 2 + [ProviderRefusedError] * 4
    assert "https://models.example/v1" in str(outcomes[2])


@pytest.mark.parametrize("seconds", [0.0, 10.0])
def test_a_dead_server_ends_a_run_within_a_minute(seconds: float) -> None:
    """One call at a time, waits that are as long as they may be, and slow attempts."""

    async def ask_in_turn() -> float:
        inner = TimedModel(script(CallError("connection")), seconds=seconds)
        model = GuardedModel(
            inner, Retry(random=LongestWaits()), Pace(AdaptiveLimit(1)), Ledger(DOLLAR_A_TOKEN)
        )
        for number in range(100):
            with suppress(CallError):
                await model.complete(make_request(f"s{number}"))
        return now()

    async def timed() -> float:
        with pytest.raises(ProviderRefusedError):
            await ask_in_turn()
        return now()

    assert 30 <= run(timed()) <= 60


def test_a_failure_that_will_not_pass_is_told_at_once() -> None:
    inner = TimedModel(script(CallError("bad_request", "HTTP 400")))

    with pytest.raises(CallError, match=r"^bad_request: HTTP 400$"):
        run(guard(inner).complete(make_request()))

    assert len(inner.asked) == 1


def test_what_is_raised_in_the_end_keeps_no_earlier_error_alive() -> None:
    with pytest.raises(CallError) as caught:
        run(guard(TimedModel(script(CallError("timeout")))).complete(make_request()))

    assert caught.value.__context__ is None


def test_a_refusal_of_every_call_passes_at_once_and_costs_nothing() -> None:
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
def test_a_failed_attempt_that_may_have_been_charged_counts_at_its_worst(
    kind: str, usd: float
) -> None:
    model = guard(TimedModel(script(CallError(kind), CallError("bad_request"))))

    with pytest.raises(CallError):
        run(model.complete(make_request()))

    assert model.ledger.spent_usd == usd


def test_an_answer_without_usage_counts_at_its_worst() -> None:
    model = guard(TimedModel(script(Completion("yes"))))

    run(model.complete(make_request()))

    assert model.ledger.spent_usd == 600


def test_a_call_that_is_given_up_counts_at_its_worst_and_gives_its_place_back() -> None:
    model = guard(TimedModel())

    async def scenario() -> None:
        task = asyncio.create_task(model.complete(make_request()))
        await asyncio.sleep(0.5)
        task.cancel()
        await asyncio.wait([task])

    run(scenario())
    assert model.ledger.spent_usd == 600
    assert model.pace.in_flight == 0


def test_a_call_that_is_given_up_before_it_was_sent_costs_nothing() -> None:
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


def test_no_more_calls_are_in_flight_than_the_pace_allows() -> None:
    inner = TimedModel()

    run(ask(guard(inner, limit=3), [make_request(str(n)) for n in range(10)]))

    assert inner.peak == 3
    assert inner.asked_at[-1] == 3


def test_a_waiting_retry_leaves_its_place_to_others() -> None:
    inner = TimedModel(script(CallError("server_error", retry_after=60.0), ANSWER))
    model = guard(inner, limit=1)

    answers = run(ask(model, [make_request("s1"), make_request("s2")]))

    assert answers == [ANSWER, ANSWER]
    assert inner.asked == ["s1", "s2", "s1"]
    assert inner.asked_at == [0, 1, 61]


def test_refusals_halve_the_calls_at_a_time_and_every_request_is_answered() -> None:
    """A server that serves two at a time."""

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


def test_tokens_a_minute_are_corrected_by_usage() -> None:
    # One token a second. 50 are expected of a call, 11 are used.
    inner = TimedModel(seconds=0)
    model = guard(inner, rate=RateLimit(tokens=60))

    async def scenario() -> None:
        for name in ("s1", "s2"):
            await model.complete(make_request(name))

    run(scenario())
    # One token was saved up: 10 are owed, and the next call starts when one is saved again.
    assert inner.asked_at == [0, 11]


def test_a_wait_longer_than_two_minutes_ends_every_call_without_asking_again() -> None:
    inner = TimedModel(script(CallError("rate_limit", "HTTP 429", retry_after=3600.0)))
    model = guard(inner, limit=1)

    answers = run(ask(model, [make_request(str(n)) for n in range(3)]))

    assert len(inner.asked) == 1
    waits = "the server asks to wait 3600 s, longer than 120 s"
    assert [str(answer) for answer in answers] == [
        f"rate_limit: HTTP 429; {waits}",
        f"rate_limit: not sent; {waits}",
        f"rate_limit: not sent; {waits}",
    ]


def test_a_cap_is_not_passed_and_the_rest_is_skipped() -> None:
    inner = TimedModel(script(Completion("yes", usage=Usage(100, 50))))
    model = guard(inner, ledger=Ledger(DOLLAR_A_TOKEN, 1000.0))

    answers = run(ask(model, [make_request(str(n)) for n in range(10)]))

    # 150 each: after three calls 550 are left, less than the 600 that one may cost.
    assert len(inner.asked) == 3
    assert model.ledger.spent_usd == 450
    skipped = [answer for answer in answers if isinstance(answer, CallError)]
    assert [answer.kind for answer in skipped] == [SKIPPED_BUDGET] * 7


def test_what_the_cap_skips_waits_for_no_pace() -> None:
    model = guard(TimedModel(), rate=RateLimit(requests=1), ledger=Ledger(DOLLAR_A_TOKEN, 599.0))

    async def scenario() -> float:
        await ask(model, [make_request(str(n)) for n in range(50)])
        return now()

    assert run(scenario()) == 0


def test_a_minute_in_which_every_call_is_refused_costs_no_answer() -> None:
    class Exhausted(TimedModel):
        async def complete(self, request: Request) -> Completion:
            if now() < 60:
                raise CallError("rate_limit", "HTTP 429")
            return await super().complete(request)

    answers = run(ask(guard(Exhausted(), limit=8), [make_request(str(n)) for n in range(30)]))

    assert all(isinstance(answer, Completion) for answer in answers)
