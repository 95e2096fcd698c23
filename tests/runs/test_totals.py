from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from pii_bench.models.base import Completion, Draws, Usage
from pii_bench.models.table import Price
from pii_bench.runs.records import Failure, RunRecord
from pii_bench.runs.totals import Totals, total

# USD per million: input 2, cached 0.5, output 10; a batch costs half.
PRICE: Final = Price(
    input=2.0,
    output=10.0,
    date=date(2026, 3, 1),
    source="https://prices.example",
    cached_input=0.5,
    batch_factor=0.5,
)
TOLD: Final = "2 in, 10 out, 2026-03-01, https://prices.example"

# 600 fresh tokens in, 400 cached, 100 out: 1,200 + 200 + 1,000 millionths of a dollar.
USAGE: Final = Usage(1000, 100, reasoning_tokens=30, cached_tokens=400)
ANSWER: Final = Completion("[]", usage=USAGE)


def record(response: Completion | Draws | Failure, name: str = "s1") -> RunRecord:
    return RunRecord(name, "request", response)


def test_of_nothing() -> None:
    assert total([], None) == Totals()
    assert total([], PRICE) == Totals(usd=0.0, price=TOLD)


def test_of_one_answer() -> None:
    assert total([record(ANSWER)], PRICE) == Totals(
        completions=1,
        uncounted=0,
        input_tokens=1000,
        output_tokens=100,
        reasoning_tokens=30,
        cached_tokens=400,
        usd=0.0024,
        price=TOLD,
    )


def test_without_a_price_the_cost_is_unknown_and_not_nothing() -> None:
    totals = total([record(ANSWER)], None)

    assert (totals.input_tokens, totals.usd, totals.price) == (1000, None, None)


def test_a_batch_costs_its_part() -> None:
    batched = record(replace(ANSWER, batched=True), "s2")

    assert total([batched], PRICE).usd == 0.0012
    assert total([record(ANSWER), batched], PRICE).usd == 0.0036


def test_a_failure_is_in_no_sum() -> None:
    assert total([record(Failure("timeout", ""))], PRICE) == Totals(usd=0.0, price=TOLD)


def test_an_answer_whose_tokens_nobody_told_is_counted_apart() -> None:
    totals = total([record(ANSWER), record(Completion("[]"), "s2")], PRICE)

    assert (totals.completions, totals.uncounted, totals.usd) == (2, 1, 0.0024)


def test_every_draw_counts() -> None:
    totals = total([record(Draws((ANSWER, ANSWER, Completion("[]"))))], PRICE)

    assert (totals.completions, totals.uncounted) == (3, 1)
    assert (totals.output_tokens, totals.usd) == (200, 0.0048)


@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**5)), max_size=20))
def test_the_order_of_the_answers_does_not_matter(counts: list[tuple[int, int]]) -> None:
    records = [
        record(Completion("[]", usage=Usage(into, out)), f"s{number}")
        for number, (into, out) in enumerate(counts)
    ]

    assert total(records, PRICE) == total(reversed(records), PRICE)
