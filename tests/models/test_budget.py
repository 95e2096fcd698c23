from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_bench.errors import PiiBenchError
from pii_bench.models.base import AnswerSchema, CallError, Message, Usage
from pii_bench.models.budget import (
    NOTHING,
    Estimate,
    Ledger,
    Range,
    cost,
    estimate,
    input_tokens,
    output_tokens,
)
from pii_bench.models.catalog import Price
from pii_bench.prompting.strategies import STRATEGIES
from tests.models.simulated import DOLLAR_A_TOKEN, make_request, now, run

if TYPE_CHECKING:
    from pii_bench.models.base import Request


@pytest.mark.parametrize(
    ("request_", "tokens"),
    [
        # 700 / 5; 700 / 3.5 + 10 for the turns; 700 / 1 + 500 for the provider's text.
        (make_request(text="a" * 700), Range(140, 210, 1200)),
        # All turns count, in bytes and not in characters.
        (
            replace(
                make_request(), messages=(Message("system", "b" * 350), Message("user", "a" * 350))
            ),
            Range(140, 210, 1200),
        ),
        (make_request(text="例" * 70), Range(42, 70, 710)),
        # {"a": "…"}: 9 characters around
        (
            replace(make_request(), schema=AnswerSchema("answer", {"a": "b" * 91})),
            Range(20, 39, 600),
        ),
        (make_request(text="\ud800"), Range(1, 11, 503)),
    ],
)
def test_input_tokens_depend_on_the_bytes(request_: Request, tokens: Range[int]) -> None:
    assert input_tokens(request_) == tokens


@pytest.mark.parametrize(
    ("prompt", "size", "low", "expected"),
    [
        # 1000 * 0.05 / 2.5 and 1000 * 0.15 / 2.5
        ("detection", 1000, 20, 60),
        ("rewrite", 3500, 50, 400),
        # Others do not depend on the text.
        ("naive", 1000, 5, 40),
        ("self-consistency", 1000, 150, 700),
        ("json+ai4privacy+5-shot", 1000, 10, 150),
        ("naive+schema", 1000, 5, 40),
        ("unknown", 1000, 1, 500),
    ],
)
def test_output_tokens_depend_on_the_prompt(
    prompt: str, size: int, low: int, expected: int
) -> None:
    request = make_request(text="a" * size, prompt=prompt, max_tokens=2048)

    assert output_tokens(request) == Range(low, expected, 2048)
    # Reasoning counts as output.
    assert output_tokens(request, reasons=True) == Range(low + 100, expected + 1000, 2048)


def test_every_strategy_has_an_estimate() -> None:
    default = output_tokens(make_request(prompt="unknown", max_tokens=2048))

    for name in STRATEGIES:
        assert output_tokens(make_request(prompt=name, max_tokens=2048)) != default


def test_answers_are_not_longer_than_allowed() -> None:
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


# USD per million: input 2, cached 0.5, output 10; a batch costs half.
PRICE = Price(
    input=2.0, output=10.0, date=date(2026, 1, 1), source="test", cached_input=0.5, batch_factor=0.5
)


@pytest.mark.parametrize(
    ("usage", "price", "batched", "usd"),
    [
        (Usage(1_000_000, 100_000), PRICE, False, 2 + 1),
        (Usage(1_000_000, 0, cached_tokens=400_000), PRICE, False, 1.2 + 0.2),
        # Unknown prices are replaced by the higher one.
        (Usage(1_000_000, 0, cached_tokens=400_000), replace(PRICE, cached_input=None), False, 2),
        (Usage(1_000_000, 100_000), replace(PRICE, batch_factor=None), True, 3),
        # Reasoning is part of the output.
        (Usage(0, 100_000, reasoning_tokens=90_000), PRICE, False, 1),
        (Usage(1_000_000, 100_000), PRICE, True, 1.5),
    ],
)
def test_the_cost_of_a_call(usage: Usage, price: Price, batched: bool, usd: float) -> None:
    assert cost(usage, price, batched) == pytest.approx(usd)


def test_a_cap_needs_a_price() -> None:
    with pytest.raises(PiiBenchError, match=r"--max-usd 5.*unknown.*--price IN,OUT"):
        Ledger(None, 5.0)


def test_without_a_price_the_cost_is_unknown() -> None:
    ledger = Ledger(None)

    ledger.settle(ledger.reserve(make_request()), Usage(7, 3, reasoning_tokens=2, cached_tokens=1))

    assert ledger.spent_usd is None


def test_calls_may_reach_the_cap_but_not_exceed_it() -> None:
    ledger = Ledger(DOLLAR_A_TOKEN, 1200.0)
    for _ in range(2):
        ledger.reserve(make_request())  # 500 of input, 100 of output
    assert ledger.reserved_usd == 1200

    with pytest.raises(CallError) as caught:
        ledger.reserve(make_request(max_tokens=1))

    assert str(caught.value) == (
        "skipped_budget: may cost up to 501.0000 USD, spent or in flight are 1200.0000 of 1200 USD"
    )


@pytest.mark.parametrize(("usage", "usd"), [(None, 600), (Usage(10, 5), 15), (NOTHING, 0)])
def test_a_call_reserves_the_highest_cost_and_settles_its_usage(
    usage: Usage | None, usd: float
) -> None:
    ledger = Ledger(DOLLAR_A_TOKEN)

    reservation = ledger.reserve(make_request())
    assert (ledger.reserved_usd, ledger.spent_usd) == (600, 0)

    ledger.settle(reservation, usage)
    assert (ledger.reserved_usd, ledger.spent_usd) == (0, usd)


def test_calls_that_were_not_made_cost_nothing_and_leave_no_reservation() -> None:
    # 0.1 + 0.2 - 0.1 - 0.2 is 2.8e-17.
    ledger = Ledger(replace(PRICE, input=0.0, output=1e5))
    reservations = [ledger.reserve(make_request(max_tokens=tokens)) for tokens in (1, 2)]

    for reservation in reservations:
        ledger.release(reservation)

    assert (ledger.reserved_usd, ledger.spent_usd) == (0, 0)


def test_a_batch_has_its_own_price() -> None:
    ledger = Ledger(replace(DOLLAR_A_TOKEN, batch_factor=0.5), 300.0)

    ledger.reserve(make_request(), batched=True)

    assert ledger.reserved_usd == 300


@pytest.mark.parametrize(("used", "made"), [(100, True), (101, False)])
def test_a_call_waits_for_those_in_flight_if_they_may_leave_room(used: int, made: bool) -> None:
    async def scenario() -> tuple[float, bool]:
        ledger = Ledger(DOLLAR_A_TOKEN, 700.0)
        first = ledger.reserve(make_request())
        asyncio.get_running_loop().call_later(5, ledger.settle, first, Usage(used, 0))
        try:
            await ledger.admit(make_request())
        except CallError:
            return now(), False
        return now(), True

    assert run(scenario()) == (5, made)


def test_a_call_that_cannot_fit_is_refused_at_once() -> None:
    async def scenario() -> float:
        ledger = Ledger(DOLLAR_A_TOKEN, 1000.0)
        ledger.settle(ledger.reserve(make_request()), Usage(401, 0))
        ledger.reserve(make_request(max_tokens=1))
        with pytest.raises(CallError):
            await ledger.admit(make_request())
        return now()

    assert run(scenario()) == 0


@given(
    st.floats(0, 10_000),
    st.lists(
        st.tuples(
            st.floats(0, 9),  # seconds
            st.sampled_from(["answer", "unknown", "refused", "not made"]),
            st.floats(0, 1),  # used share of the reservation
        ),
        max_size=25,
    ),
)
def test_concurrent_calls_never_exceed_the_cap_and_all_end(
    cap: float, calls: list[tuple[float, str, float]]
) -> None:
    ledger = Ledger(DOLLAR_A_TOKEN, cap)

    def check() -> None:
        assert ledger.spent_usd is not None
        assert ledger.spent_usd + ledger.reserved_usd <= cap

    async def one(seconds: float, outcome: str, used: float) -> bool:
        try:
            reservation = await ledger.admit(make_request())
        except CallError:
            return False
        check()
        await asyncio.sleep(seconds)
        usages = {"answer": Usage(int(500 * used), int(100 * used)), "refused": NOTHING}
        if outcome == "not made":
            ledger.release(reservation)
        else:
            ledger.settle(reservation, usages.get(outcome))
        check()
        return True

    async def scenario() -> list[bool]:
        return await asyncio.gather(*(one(*call) for call in calls))

    made = run(scenario())
    assert ledger.reserved_usd == 0
    # A call is only refused if less than its highest cost is left.
    if not all(made):
        assert ledger.spent_usd is not None
        assert ledger.spent_usd + 600 > cap


# 700 bytes: 140, 210 or 1200 tokens; an answer of 5, 40 or 100.
REQUESTS = [make_request("s1", text="a" * 700), make_request("s2", text="b" * 700)]


def test_an_estimate_sums_calls_tokens_and_cost() -> None:
    total = estimate(REQUESTS, PRICE)

    assert total.calls == 2
    assert (total.input_tokens, total.output_tokens) == (Range(280, 420, 2400), Range(10, 80, 200))
    # 280 * 2 + 10 * 10 = 660 millionths of a dollar, and so on.
    assert total.usd is not None
    assert (total.usd.low, total.usd.expected, total.usd.high) == pytest.approx(
        (0.00066, 0.00164, 0.0068)
    )
    batch = estimate(REQUESTS, PRICE, batched=True)
    assert batch.usd is not None
    assert batch.usd.high == pytest.approx(0.0034)


def test_an_estimate_without_a_price_or_without_requests() -> None:
    nothing = Range(0, 0, 0)

    assert estimate(REQUESTS, None).usd is None
    assert estimate([], PRICE) == Estimate(0, nothing, nothing, Range(0, 0, 0))


def test_no_call_is_refused_if_the_cap_is_the_highest_cost() -> None:
    high = estimate(REQUESTS, PRICE).usd
    assert high is not None
    ledger = Ledger(PRICE, high.high + 1e-12)

    for request in REQUESTS:
        ledger.settle(ledger.reserve(request), None)

    assert ledger.spent_usd == pytest.approx(high.high)
