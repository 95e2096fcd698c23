from __future__ import annotations

import asyncio
import datetime as dt
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pii_bench.datasets.catalog import load_dataset
from pii_bench.errors import UnknownNameError
from pii_bench.models.base import CallError, Completion, Draws, Usage
from pii_bench.models.catalog import Price
from pii_bench.ranking import costs
from pii_bench.ranking.costs import (
    Assumptions,
    Bill,
    Given,
    bill,
    costed_systems,
    seconds_per_document,
    stored_seconds_per_document,
    usd_per_document,
)
from pii_bench.ranking.stored import read_runs
from pii_bench.runs.records import Failure, RunRecord
from pii_bench.systems.base import SystemCard
from pii_bench.tasks import Task
from tests.ranking.stored_runs import ANN, BO, store_run, tiny_dataset

if TYPE_CHECKING:
    from pathlib import Path

    from pii_bench.datasets.sample import Sample

PRICE = Price(input=2.0, output=10.0, date=dt.date(2026, 1, 1), source="a test")
THOUSAND_IN_HUNDRED_OUT = Completion("a", usage=Usage(1000, 100))  # 0.002 + 0.001 USD
UNCOUNTED = Completion("a")


def record(response: Completion | Draws | Failure) -> RunRecord:
    return RunRecord("s1", "hash", response)


def test_people_check_a_share_and_mask_what_failed() -> None:
    # 3,600 documents; a second for each is an hour. A quarter failed: 900 x 60 s = 15 h by hand.
    # Of the other 2,700 half are checked: 1,350 x 20 s = 7.5 h. 22.5 h at 10 USD are 225.
    assumed = Assumptions(documents=3600, wage=10, hand_seconds=60, review_seconds=20)
    system = {"usd_per_document": 0.01, "seconds_per_document": 2, "failed": 0.25}

    assert bill(assumed, review_share=0.5, **system) == Bill(
        model_usd=36,
        model_hours=2,
        people_hours=22.5,
        people_usd=225,
        total_usd=261,
        by_hand_usd=600,
        saved_usd=339,
    )


def test_what_is_unknown_is_in_no_sum() -> None:
    found = bill(Assumptions(3600, 10, 60, 20), usd_per_document=None, seconds_per_document=None)

    assert (found.model_usd, found.model_hours, found.total_usd, found.saved_usd) == (None,) * 4
    assert found.people_usd == 200


def test_a_document_costs_all_its_draws() -> None:
    # 0.003 and twice that: 0.0045 on average. Failures and uncounted answers say nothing.
    records = [
        record(THOUSAND_IN_HUNDRED_OUT),
        record(Draws((THOUSAND_IN_HUNDRED_OUT, THOUSAND_IN_HUNDRED_OUT))),
        record(Draws((THOUSAND_IN_HUNDRED_OUT, UNCOUNTED))),
        record(UNCOUNTED),
        record(Failure("timeout", "")),
    ]

    assert usd_per_document(records, PRICE) == pytest.approx(0.0045)


def test_without_a_price_or_counts_no_price_is_made_up() -> None:
    assert usd_per_document([record(THOUSAND_IN_HUNDRED_OUT)], None) is None
    assert usd_per_document([record(UNCOUNTED)], PRICE) is None
    assert usd_per_document([], PRICE) is None


def test_the_stored_time_of_a_document_is_that_of_all_its_calls() -> None:
    one, two = (replace(UNCOUNTED, seconds=seconds) for seconds in (1.0, 2.0))
    records = [
        record(one),
        record(Draws((one, two))),
        record(Draws((one, UNCOUNTED))),
        record(Failure("timeout", "")),
    ]

    assert stored_seconds_per_document(records) == 2.0
    assert stored_seconds_per_document([record(UNCOUNTED)]) is None


class Sleeper:
    """Answers after 20 ms."""

    card = SystemCard("fake/sleeper", "detection", "", Task.DETECTION, oracle=False, settings={})

    def __init__(self, *, fails: bool = False) -> None:
        self.fails = fails
        self.closed = False

    def request_hash(self, sample: Sample) -> str:
        raise NotImplementedError

    async def respond(self, _: Sample) -> Completion:
        await asyncio.sleep(0.02)
        if self.fails:
            raise CallError("timeout", "")
        return Completion("")

    async def close(self) -> None:
        self.closed = True


def test_the_time_of_a_document_is_that_of_all_its_systems() -> None:
    systems = [Sleeper(), Sleeper()]

    found = asyncio.run(seconds_per_document(systems, load_dataset("demo").samples[:3]))

    assert found is not None
    assert found >= 0.039  # no less than both sleep
    assert all(system.closed for system in systems)


def test_what_is_not_timed_has_no_time() -> None:
    samples = load_dataset("demo").samples

    assert asyncio.run(seconds_per_document([Sleeper()], samples[:1])) is None
    assert asyncio.run(seconds_per_document([Sleeper(fails=True)], samples[:3])) is None


def test_systems_of_another_name_are_not_timed_but_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = tiny_dataset(tmp_path / "tiny.jsonl")
    store_run(tmp_path / "runs", dataset, "detection", {"s1": ANN, "s2": BO}, model="fake/one")
    sleeper = Sleeper()
    monkeypatch.setattr(costs, "build_systems", lambda *_: (sleeper,))

    (found,) = costed_systems(
        read_runs(tmp_path).runs, dataset.name, Task.DETECTION, Given(measure=1)
    )

    assert found.seconds is None
    assert found.seconds_from == "not measured: today its name means another system"
    assert sleeper.closed


def test_systems_that_a_row_does_not_need_are_not_timed_but_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = tiny_dataset(tmp_path / "tiny.jsonl")
    store_run(tmp_path / "runs", dataset, "detection", {"s1": ANN, "s2": BO}, model="fake/sleeper")
    needed, other = Sleeper(), Sleeper(fails=True)
    other.card = replace(Sleeper.card, prompt="naive", task=Task.QUERY_RELATED)
    monkeypatch.setattr(costs, "build_systems", lambda *_: (needed, other))

    (found,) = costed_systems(
        read_runs(tmp_path).runs, dataset.name, Task.DETECTION, Given(measure=1)
    )

    assert found.seconds is not None
    assert found.seconds >= 0.019
    assert (needed.closed, other.closed) == (True, True)


def test_an_unknown_dataset_is_answered_with_the_sorted_names_of_the_others(
    tmp_path: Path,
) -> None:
    for name in ("b", "c", "a"):
        dataset = tiny_dataset(tmp_path / f"{name}.jsonl")
        store_run(tmp_path / "runs", dataset, "detection", {"s1": ANN, "s2": BO})

    with pytest.raises(UnknownNameError) as caught:
        costed_systems(read_runs(tmp_path).runs, "unknown", Task.DETECTION, Given())

    assert len(caught.value.allowed) == 6
    assert caught.value.allowed == tuple(sorted(caught.value.allowed))
