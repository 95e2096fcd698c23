"""Estimates of calls, tokens and cost, without a call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from pii_bench.models.budget import Estimate, Range, estimate
from pii_bench.runs.jobs import Job, ledger_of
from pii_bench.systems.prompted import DrawnSystem, PromptedSystem

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Estimates: TypeAlias = "Sequence[tuple[Job, Estimate]]"

_NOTHING: Final = Estimate(0, Range(0, 0, 0), Range(0, 0, 0), Range(0.0, 0.0, 0.0))


def estimate_jobs(jobs: Sequence[Job], *, reasons: bool, batched: bool) -> Estimates:
    """Estimate the calls, tokens and cost of the missing responses of each job."""
    # Two datasets may share requests; each is made once.
    asked: set[str] = set()
    return [(job, _estimate(job, asked, reasons=reasons, batched=batched)) for job in jobs]


def sum_estimates(estimates: Iterable[Estimate]) -> Estimate:
    """Add estimates; the cost is unknown if that of any is."""
    estimates = list(estimates)
    costs = [item.usd for item in estimates]
    known = [usd for usd in costs if usd is not None]
    return Estimate(
        calls=sum(item.calls for item in estimates),
        input_tokens=sum((item.input_tokens for item in estimates), start=Range(0, 0, 0)),
        output_tokens=sum((item.output_tokens for item in estimates), start=Range(0, 0, 0)),
        usd=sum(known, start=Range(0.0, 0.0, 0.0)) if len(known) == len(costs) else None,
    )


def _estimate(job: Job, asked: set[str], *, reasons: bool, batched: bool) -> Estimate:
    system, ledger = job.system, ledger_of(job.system)
    if not isinstance(system, PromptedSystem | DrawnSystem) or ledger is None:
        return _NOTHING
    submitted = job.in_batches() if batched else set()
    asked.update(job.requests[name] for name in submitted)
    samples = [sample for sample in job.unanswered() if job.requests[sample.id] not in asked]
    asked.update(job.requests[sample.id] for sample in samples)
    requests = (request for sample in samples for request in system.requests(sample))
    estimated = estimate(requests, ledger.price, reasons=reasons, batched=batched)
    # Without a call the cost is known, even if the price is not.
    return estimated if estimated.calls else _NOTHING
