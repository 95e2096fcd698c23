from __future__ import annotations

import asyncio
from datetime import date
from typing import Final

import pytest

from pii_bench.errors import PiiBenchError
from pii_bench.models.base import SKIPPED_BUDGET, CallError
from pii_bench.models.calls.guarded import CallPolicy
from pii_bench.models.catalog import Price
from tests.models.calls.simulated import DOLLAR_A_TOKEN, TimedModel, make_request, run

LISTED: Final = Price(2.0, 10.0, date(2026, 1, 1), "the table")
OWN: Final = Price(1.0, 5.0, date(2026, 3, 1), "--price")


def ask(model: TimedModel, policy: CallPolicy, calls: int) -> list[float]:
    """When calls are made that are all asked for at once."""

    async def all_at_once() -> None:
        guarded = policy.guard(model, None)
        await asyncio.gather(*(guarded.complete(make_request(f"s{n}")) for n in range(calls)))

    run(all_at_once())
    return model.asked_at


def test_no_more_calls_are_made_at_a_time_than_the_user_said() -> None:
    model = TimedModel(seconds=1.0)

    assert ask(model, CallPolicy(concurrency=2), 4) == [0.0, 0.0, 1.0, 1.0]
    assert model.peak == 2


def test_requests_a_minute_are_spaced_evenly() -> None:
    assert ask(TimedModel(), CallPolicy(requests_per_minute=30), 3) == pytest.approx([0, 2, 4])


def test_tokens_a_minute_space_calls_too() -> None:
    model = TimedModel()

    starts = ask(model, CallPolicy(tokens_per_minute=600), 3)

    # A call may use more than the ten tokens of a second: the next one waits for it.
    assert starts[0] == 0
    assert starts[1] > 1
    assert starts[2] > starts[1] + 1


def test_without_limits_a_minute_calls_start_at_once() -> None:
    assert ask(TimedModel(), CallPolicy(concurrency=3), 3) == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("own", "listed", "price"),
    [(OWN, LISTED, OWN), (None, LISTED, LISTED), (OWN, None, OWN), (None, None, None)],
)
def test_the_users_price_stands_in_the_place_of_the_tables(
    own: Price | None, listed: Price | None, price: Price | None
) -> None:
    guarded = CallPolicy(price=own).guard(TimedModel(), listed)

    assert guarded.ledger.price == price


def test_a_cap_needs_a_price() -> None:
    with pytest.raises(PiiBenchError, match=r"^--max-usd 5: the model's price is unknown"):
        CallPolicy(max_usd=5.0).guard(TimedModel(), None)


def test_a_cap_is_kept() -> None:
    # A call may take 600 tokens.
    guarded = CallPolicy(max_usd=599.0).guard(TimedModel(), DOLLAR_A_TOKEN)

    with pytest.raises(CallError, match=SKIPPED_BUDGET):
        run(guarded.complete(make_request()))


def test_the_model_is_what_it_was() -> None:
    model = TimedModel()

    guarded = CallPolicy().guard(model, LISTED)

    assert (guarded.name, guarded.identity) == (model.name, model.identity)
