from __future__ import annotations

from datetime import date

import pytest

from pii_bench.models.base import Usage
from pii_bench.models.calls.budget import Estimate, Ledger, Range, estimate
from pii_bench.models.catalog import Price
from tests.models.calls.simulated import make_request

PRICE = Price(2.0, 10.0, date(2026, 1, 1), "test", batch_factor=0.5)

# 700 bytes: 140, 210 or 1200 tokens; an answer of 5, 40 or 100.
REQUESTS = [make_request("s1", text="a" * 700), make_request("s2", text="b" * 700)]


def test_calls_tokens_and_cost_are_summed_over_the_requests() -> None:
    found = estimate(REQUESTS, PRICE)

    assert (found.calls, found.input_tokens, found.output_tokens) == (
        2,
        Range(280, 420, 2400),
        Range(10, 80, 200),
    )
    # 280 * 2 + 10 * 10 = 660 millionths of a dollar, and so on.
    assert found.usd is not None
    assert found.usd.low == pytest.approx(0.00066)
    assert found.usd.expected == pytest.approx(0.00164)
    assert found.usd.high == pytest.approx(0.0068)


def test_a_batch_costs_its_part() -> None:
    found = estimate(REQUESTS, PRICE, batched=True)

    assert found.usd is not None
    assert found.usd.high == pytest.approx(0.0034)


def test_a_model_that_reasons_writes_more() -> None:
    found = estimate([make_request(max_tokens=2048)], PRICE, reasons=True)

    assert found.output_tokens == Range(105, 1040, 2048)


def test_the_cost_is_unknown_without_a_price() -> None:
    assert estimate(REQUESTS, None).usd is None


def test_no_requests_cost_nothing() -> None:
    nothing = Range(0, 0, 0)

    assert estimate([], PRICE) == Estimate(0, nothing, nothing, Range(0, 0, 0))


def test_a_cap_at_the_highest_cost_refuses_no_call() -> None:
    high = estimate(REQUESTS, PRICE).usd
    assert high is not None
    ledger = Ledger(PRICE, high.high + 1e-12)

    for request in REQUESTS:
        ledger.settle(ledger.reserve(request), None)

    assert ledger.spent_usd == pytest.approx(high.high)
    assert ledger.totals.usage == Usage(0, 0)
