"""Concurrent calls and calls per minute."""

from __future__ import annotations

import asyncio
import contextlib
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_bench.models.base import CallError, Completion, Usage
from pii_bench.models.calls import Pace
from tests.models.simulated import now, run

ANSWER = Completion("yes")
TOO_MANY = CallError("rate_limit")  # without a wait


async def call(pace: Pace, seconds: float = 1.0, *, tokens: int = 0) -> float:
    """Make one successful call; return its start."""
    slot = await pace.enter(tokens)
    start = now()
    await asyncio.sleep(seconds)
    pace.leave(slot, ANSWER)
    return start


async def starts(pace: Pace, calls: int, seconds: float = 1.0, *, tokens: int = 0) -> list[float]:
    """Make calls at once; return their starts."""
    return await asyncio.gather(*(call(pace, seconds, tokens=tokens) for _ in range(calls)))


def test_a_round_of_refusals_halves_the_limit_and_answers_raise_it_by_one() -> None:
    async def scenario() -> list[int]:
        pace, allowed = Pace(8), list[int]()
        first_round = [await pace.enter(0) for _ in range(6)]
        for slot in first_round[:5]:
            pace.leave(slot, TOO_MANY)
        allowed.append(pace.allowed)
        pace.leave(await pace.enter(0), TOO_MANY)
        allowed.append(pace.allowed)
        # Answers from an earlier round do not count, and as many as the limit raise it.
        pace.leave(first_round[5], ANSWER)
        for calls in (1, 1, 3 + 4 + 5 + 6 + 7):
            for _ in range(calls):
                await call(pace, 0)
            allowed.append(pace.allowed)
        return allowed

    assert run(scenario()) == [4, 2, 2, 3, 8]


def test_each_call_is_sent_before_the_next_one_starts() -> None:
    async def scenario() -> list[str]:
        pace, seen = Pace(3), list[str]()

        async def one(name: str) -> None:
            await pace.enter(0)
            seen.append(f"{name} starts")
            asyncio.get_running_loop().call_soon(seen.append, f"{name} is sent")

        await asyncio.gather(*(one(name) for name in "abc"))
        await asyncio.sleep(0)
        return seen

    assert run(scenario()) == [
        *("a starts", "a is sent", "b starts", "b is sent"),
        *("c starts", "c is sent"),
    ]


@pytest.mark.parametrize(
    ("failures", "began"),
    [
        # The limit falls to 1, and the answer at 31 s raises it to 2.
        ([CallError("overloaded", retry_after=30.0)], [30, 31, 31]),
        # A shorter wait does not shorten a longer one.
        ([CallError("rate_limit", retry_after=wait) for wait in (30.0, 5.0)], [30, 31, 31]),
        # Other failures neither hold calls nor halve the limit.
        ([CallError("server_error", retry_after=30.0)], [0, 0, 0]),
    ],
)
def test_refusals_hold_calls_as_long_as_the_server_asks(
    failures: list[CallError], began: list[float]
) -> None:
    async def scenario() -> list[float]:
        pace = Pace(3)
        slots = [await pace.enter(0) for _ in failures]
        for slot, failure in zip(slots, failures, strict=True):
            pace.leave(slot, failure)
        return await starts(pace, 3)

    assert run(scenario()) == began


async def refusals(pace: Pace, calls: int) -> list[float]:
    """Make calls one after another that are all refused; return their starts."""
    started = []
    for _ in range(calls):
        slot = await pace.enter(0)
        started.append(now())
        pace.leave(slot, TOO_MANY)
    return started


@pytest.mark.parametrize(
    ("limit", "starts"),
    [
        (1, [0, 1, 3, 7, 15, 31, 63, 127, 127, 127]),
        # The limit falls from 4 to 2 and 1; calls are held after the next refusal.
        (4, [0, 0, 0, 1]),
    ],
)
def test_refusals_at_a_limit_of_one_hold_calls_ever_longer(limit: int, starts: list[float]) -> None:
    assert run(refusals(Pace(limit), len(starts))) == starts


def test_refusals_from_an_earlier_round_hold_no_calls() -> None:
    async def scenario() -> list[float]:
        pace = Pace(2)
        for slot in [await pace.enter(0), await pace.enter(0)]:
            pace.leave(slot, TOO_MANY)
        return await refusals(pace, 2)

    assert run(scenario()) == [0, 1]


def test_an_answer_resets_the_hold() -> None:
    async def scenario() -> list[float]:
        pace = Pace(1)
        before = await refusals(pace, 3)
        await call(pace, 0)
        return before + await refusals(pace, 2)

    assert run(scenario()) == [0, 1, 3, 7, 8]


def test_a_slot_granted_during_a_cancellation_is_freed() -> None:
    async def scenario() -> tuple[int, float]:
        pace = Pace(1)
        slot = await pace.enter(0)
        waiting = asyncio.create_task(pace.enter(0))
        await asyncio.sleep(0)
        pace.leave(slot, ANSWER)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        return pace.in_flight, await call(pace)

    assert run(scenario()) == (0, 0)


def test_a_cancelled_head_of_the_queue_does_not_hold_a_smaller_call() -> None:
    async def scenario() -> float:
        pace = Pace(9, tokens=60)  # one a second
        await call(pace, 0, tokens=10)  # owed until second 9; one more is saved at 10
        large = asyncio.create_task(call(pace, 0, tokens=1))
        await asyncio.sleep(1)
        small = asyncio.create_task(call(pace, 0, tokens=0))
        await asyncio.sleep(0)
        large.cancel()
        return await small

    assert run(scenario()) == 9


@pytest.mark.parametrize(
    ("requests", "tokens", "per_call", "began"),
    [
        # 10 a second, of which one second's worth start at once.
        (600, None, 0, [0] * 10 + [0.1, 0.2]),
        # 100 a second, as many saved: each call takes 500, the next starts when 100 are saved.
        (None, 6000, 500, [0, 5, 10]),
        # Of 1 and 10 a second the slower one counts.
        (60, 600, 30, [0, 3, 6]),
    ],
)
def test_calls_start_at_the_rate(
    requests: float | None, tokens: float | None, per_call: int, began: list[float]
) -> None:
    pace = Pace(99, requests, tokens)

    assert run(starts(pace, len(began), tokens=per_call)) == pytest.approx(began)


# Of 100 saved and 500 taken, 400 are owed; after the correction 100 or 600.
@pytest.mark.parametrize(("used", "start"), [(Usage(150, 50), 2), (Usage(500, 200), 7)])
def test_unused_tokens_are_given_back_and_more_tokens_delay_the_next_call(
    used: Usage, start: float
) -> None:
    async def scenario() -> float:
        pace = Pace(99, tokens=6000)
        pace.leave(await pace.enter(500), Completion("yes", usage=used))
        return await call(pace, tokens=500)

    assert run(scenario()) == start


@given(
    st.integers(1, 6),
    st.lists(
        st.tuples(
            st.floats(0, 5),
            st.sampled_from(["answer", "rate_limit", "overloaded", "timeout", "cancelled"]),
        ),
        max_size=40,
    ),
)
def test_the_limit_is_never_exceeded_and_all_calls_start(
    maximum: int, calls: list[tuple[float, str]]
) -> None:
    pace = Pace(maximum)
    entered = 0

    async def one(seconds: float, outcome: str) -> None:
        nonlocal entered
        slot = await pace.enter(0)
        entered += 1
        assert 1 <= pace.allowed <= maximum
        # If the limit was halved since then, more may be in flight.
        assert pace.in_flight <= (pace.allowed if slot.round == pace.round else maximum)
        try:
            await asyncio.sleep(seconds)
        finally:
            failed = outcome not in {"answer", "cancelled"}
            pace.leave(slot, CallError(outcome, retry_after=seconds) if failed else ANSWER)

    async def scenario() -> None:
        tasks = [asyncio.create_task(one(*each)) for each in calls]
        await asyncio.sleep(1)
        for task, (_, outcome) in zip(tasks, calls, strict=True):
            if outcome == "cancelled":
                task.cancel()
        for task in tasks:
            with contextlib.suppress(asyncio.CancelledError):
                await task
        assert pace.in_flight == 0

    run(scenario())
    cancelled = sum(outcome == "cancelled" for _, outcome in calls)
    assert len(calls) - cancelled <= entered <= len(calls)


@given(
    st.floats(1, 10_000),
    st.lists(st.tuples(st.floats(0, 3), st.integers(0, 3000)), min_size=1, max_size=40),
)
def test_no_period_gets_more_tokens_than_the_rate_and_the_savings(
    per_minute: float, calls: list[tuple[float, int]]
) -> None:
    async def scenario() -> list[tuple[float, int]]:
        pace = Pace(999, tokens=per_minute)
        started = []
        for pause, tokens in calls:
            await asyncio.sleep(pause)
            started.append((await call(pace, 0, tokens=tokens), tokens))
        return started

    started = run(scenario())
    per_second = per_minute / 60
    saved = max(1.0, per_second)
    # A call may start on credit, so the last call of a period does not count.
    for first in range(len(started)):
        for last in range(first + 1, len(started)):
            seconds = started[last][0] - started[first][0]
            taken = sum(tokens for _, tokens in started[first:last])
            assert taken <= saved + seconds * per_second + 1e-3
    assert all(earlier[0] <= later[0] for earlier, later in pairwise(started))
