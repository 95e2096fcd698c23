from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Final

import pytest

from pii_bench.models.base import SKIPPED_BUDGET, Completion, Sampling
from pii_bench.models.budget import Ledger
from pii_bench.models.catalog import Price
from pii_bench.runs.batch import afford
from pii_bench.runs.records import Failure, RunRecord
from pii_bench.runs.store import Batch, BatchesFile, RunFiles, RunStore, read_lines
from tests.builders import make_sample
from tests.fakes import FakeModel, fake_system

if TYPE_CHECKING:
    from pathlib import Path

SAMPLES: Final = [make_sample(f"s{number}") for number in range(1, 6)]
SYSTEM: Final = fake_system(FakeModel(), sampling=Sampling(max_tokens=100))
REQUESTS: Final = {sample.id: SYSTEM.request_hash(sample) for sample in SAMPLES}

# Input is free and a token of output costs a dollar: a call costs at most 100.
PRICE: Final = Price(0.0, 1e6, date(2026, 1, 1), "test")


@pytest.fixture
def files(tmp_path: Path) -> RunFiles:
    return RunFiles.at(tmp_path, "fake/one", "naive", "demo")


def affordable(files: RunFiles, ledger: Ledger | None) -> list[str]:
    with RunStore(files, REQUESTS) as store:
        return [sample.id for sample in afford(SYSTEM, SAMPLES, store, files, ledger)]


def stored(files: RunFiles) -> dict[str, object]:
    return {record.id: record.response for _, record in read_lines(files.responses)}


def answer(files: RunFiles, *names: str) -> None:
    with RunStore(files, REQUESTS) as store:
        for name in names:
            store.append(RunRecord(name, REQUESTS[name], Completion("[]")))


def submit(files: RunFiles, requests: dict[str, str], job_id: str | None = "job-1") -> None:
    BatchesFile(files).put(Batch("00ff", 0.0, requests, job_id))


def test_without_a_ledger_all_may_be_submitted(files: RunFiles) -> None:
    assert affordable(files, None) == ["s1", "s2", "s3", "s4", "s5"]
    assert stored(files) == {}


def test_without_a_cap_all_may_be_submitted(files: RunFiles) -> None:
    assert affordable(files, Ledger(None)) == ["s1", "s2", "s3", "s4", "s5"]
    assert affordable(files, Ledger(PRICE)) == ["s1", "s2", "s3", "s4", "s5"]
    assert stored(files) == {}


def test_what_the_cap_does_not_pay_for_is_recorded_as_skipped(files: RunFiles) -> None:
    assert affordable(files, Ledger(PRICE, 250.0)) == ["s1", "s2"]

    skipped = stored(files)
    assert list(skipped) == ["s3", "s4", "s5"]
    assert all(
        isinstance(each, Failure) and each.kind == SKIPPED_BUDGET for each in skipped.values()
    )


def test_a_batch_at_half_the_price_holds_twice_as_many(files: RunFiles) -> None:
    half = Price(0.0, 1e6, date(2026, 1, 1), "test", batch_factor=0.5)

    assert affordable(files, Ledger(half, 250.0)) == ["s1", "s2", "s3", "s4", "s5"]


def test_what_is_answered_costs_nothing_more(files: RunFiles) -> None:
    answer(files, "s1", "s2")

    assert affordable(files, Ledger(PRICE, 250.0)) == ["s1", "s2", "s3", "s4"]


def test_what_is_submitted_is_paid_for(files: RunFiles) -> None:
    submit(files, {name: REQUESTS[name] for name in ("s2", "s3")})

    assert affordable(files, Ledger(PRICE, 250.0)) == ["s1", "s2", "s3", "s4"]


def test_what_was_submitted_in_other_words_is_to_be_paid_for(files: RunFiles) -> None:
    submit(files, dict.fromkeys(("s2", "s3"), "another request"))

    assert affordable(files, Ledger(PRICE, 250.0)) == ["s1", "s2"]


def test_a_job_that_may_not_have_arrived_is_to_be_paid_for(files: RunFiles) -> None:
    submit(files, {name: REQUESTS[name] for name in ("s2", "s3")}, job_id=None)

    assert affordable(files, Ledger(PRICE, 250.0)) == ["s1", "s2"]


def test_what_is_set_aside_stays_so_for_the_run(files: RunFiles) -> None:
    ledger = Ledger(PRICE, 250.0)
    affordable(files, ledger)
    submit(files, {name: REQUESTS[name] for name in ("s1", "s2")})

    assert affordable(files, ledger) == ["s1", "s2"]
    assert ledger.reserved_usd == 200
