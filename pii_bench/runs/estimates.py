"""What jobs would take, reckoned without one call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from pii_bench.models.budget import Estimate, Range, estimate
from pii_bench.runs.jobs import Job, ledger_of
from pii_bench.systems.prompted import ChunkedSystem, PromptedSystem, VotedSystem

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Estimates: TypeAlias = "Sequence[tuple[Job, Estimate]]"

_NOTHING: Final = Estimate(0, Range(0, 0, 0), Range(0, 0, 0), Range(0.0, 0.0, 0.0))


def estimate_jobs(jobs: Sequence[Job], *, reasons: bool, batched: bool) -> Estimates:
    """What each job would take: calls, tokens and cost of what has no answer yet."""
    # What two datasets ask alike is asked once.
    asked: set[str] = set()
    return [(job, _estimate(job, asked, reasons=reasons, batched=batched)) for job in jobs]


def sum_estimates(estimates: Iterable[Estimate]) -> Estimate:
    """What all of them take together; the cost is unknown where that of one is."""
    estimates = list(estimates)
    costs = [each.usd for each in estimates]
    known = [usd for usd in costs if usd is not None]
    return Estimate(
        calls=sum(each.calls for each in estimates),
        input_tokens=sum((each.input_tokens for each in estimates), start=Range(0, 0, 0)),
        output_tokens=sum((each.output_tokens for each in estimates), start=Range(0, 0, 0)),
        usd=sum(known, start=Range(0.0, 0.0, 0.0)) if len(known) == len(costs) else None,
    )


def _estimate(job: Job, asked: set[str], *, reasons: bool, batched: bool) -> Estimate:
    system, ledger = job.system, ledger_of(job.system)
    if not isinstance(system, PromptedSystem | VotedSystem | ChunkedSystem) or ledger is None:
        return _NOTHING
    submitted = job.in_batches() if batched else set()
    asked.update(job.requests[name] for name in submitted)
    samples = [each for each in job.unanswered() if job.requests[each.id] not in asked]
    asked.update(job.requests[sample.id] for sample in samples)
    requests = (each for sample in samples for each in system.requests(sample))
    told = estimate(requests, ledger.price, reasons=reasons, batched=batched)
    # Whatever a call costs, none costs nothing.
    return told if told.calls else _NOTHING
