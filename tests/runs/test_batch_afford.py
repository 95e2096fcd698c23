from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Final

import pytest

from pii_bench.models.base import SKIPPED_BUDGET, Completion, Sampling
from pii_bench.models.budget import Ledger
from pii_bench.models.catalog import Price
from pii_bench.runs.batch import afford
from pii_bench.runs.records import Failure, RunRecord
from pii_bench.runs.store import Batch, BatchesFile, RunStore, read_responses
from tests.builders import make_sample
from tests.fakes import FakeModel, fake_system

if TYPE_CHECKING:
    from pii_bench.runs.store import RunFiles

SAMPLES: Final = [make_sample(f"s{number}") for number in range(1, 6)]
SYSTEM: Final = fake_system(FakeModel(), sampling=Sampling(max_tokens=100))
REQUESTS: Final = {sample.id: SYSTEM.request_hash(sample) for sample in SAMPLES}

# Input is free and an output token costs a dollar, so a call costs at most 100 dollars.
PRICE: Final = Price(0.0, 1e6, date(2026, 1, 1), "test")


SUBMITTED: Final = {name: REQUESTS[name] for name in ("s2", "s3")}


def affordable(files: RunFiles, ledger: Ledger | None) -> list[str]:
    with RunStore(files, REQUESTS) as store:
        return [sample.id for sample in afford(SYSTEM, SAMPLES, store, ledger)]


def stored(files: RunFiles) -> dict[str, object]:
    return {record.id: record.response for record in read_responses(files.responses)}


@pytest.mark.parametrize("ledger", [None, Ledger(None), Ledger(PRICE)])
def test_without_a_cap_every_sample_may_be_submitted(
    files: RunFiles, ledger: Ledger | None
) -> None:
    assert affordable(files, ledger) == ["s1", "s2", "s3", "s4", "s5"]
    assert stored(files) == {}


def test_samples_beyond_the_cap_are_recorded_as_skipped(files: RunFiles) -> None:
    assert affordable(files, Ledger(PRICE, 250.0)) == ["s1", "s2"]

    skipped = stored(files)
    assert list(skipped) == ["s3", "s4", "s5"]
    assert all(
        isinstance(failure, Failure) and failure.kind == SKIPPED_BUDGET
        for failure in skipped.values()
    )


def test_a_batch_at_half_the_price_holds_twice_as_many(files: RunFiles) -> None:
    half = Price(0.0, 1e6, date(2026, 1, 1), "test", batch_factor=0.5)

    assert affordable(files, Ledger(half, 250.0)) == ["s1", "s2", "s3", "s4", "s5"]


def test_answered_samples_do_not_count_against_the_cap(files: RunFiles) -> None:
    with RunStore(files, REQUESTS) as store:
        for name in ("s1", "s2"):
            store.append(RunRecord(name, REQUESTS[name], Completion("[]")))

    assert affordable(files, Ledger(PRICE, 250.0)) == ["s1", "s2", "s3", "s4"]


@pytest.mark.parametrize(
    ("requests", "job_id", "names"),
    [
        (SUBMITTED, "job-1", ["s1", "s2", "s3", "s4"]),
        (dict.fromkeys(SUBMITTED, "another request"), "job-1", ["s1", "s2"]),
        (SUBMITTED, None, ["s1", "s2"]),
    ],
    ids=["submitted", "submitted with another request", "perhaps not arrived"],
)
def test_only_a_sure_submission_of_the_same_request_does_not_count_against_the_cap(
    files: RunFiles, requests: dict[str, str], job_id: str | None, names: list[str]
) -> None:
    BatchesFile(files).put(Batch("00ff", 0.0, requests, job_id))
    ledger = Ledger(PRICE, 250.0)

    assert affordable(files, ledger) == names
    # A reservation lasts for the run.
    assert ledger.reserved_usd == 200
