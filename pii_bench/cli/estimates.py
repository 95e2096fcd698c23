"""What a run would take, printed without one call."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Final, TypeAlias

from pii_bench.cli.terminal import say, say_json
from pii_bench.escaping import markdown_table
from pii_bench.models.budget import Estimate, Range, estimate
from pii_bench.runs.jobs import Job, ledger_of

if TYPE_CHECKING:
    from collections.abc import Sequence

Estimates: TypeAlias = "Sequence[tuple[Job, Estimate]]"

_HEADER: Final = ("prompt", "dataset", "calls", "tokens in", "tokens out", "USD")
_NOTHING: Final = Estimate(0, Range(0, 0, 0), Range(0, 0, 0), Range(0.0, 0.0, 0.0))


def estimate_jobs(jobs: Sequence[Job], *, reasons: bool, batched: bool) -> Estimates:
    """What each job would take: calls, tokens and cost of what has no answer yet."""
    # What two datasets ask alike is asked once.
    asked: set[str] = set()
    return [(job, _estimate(job, asked, reasons=reasons, batched=batched)) for job in jobs]


def print_estimates(estimates: Estimates, *, as_json: bool, models: bool = False) -> None:
    """Print what jobs would take: low, expected and high; with `models` the model of each."""
    if as_json:
        names = [(job.system.card, job.dataset.name, each) for job, each in estimates]
        say_json(
            [
                {"model": card.model, "prompt": card.prompt, "dataset": dataset, **asdict(each)}
                for card, dataset, each in names
            ]
        )
        return
    rows = [
        (job.system.card.model, job.system.card.prompt, job.dataset.name, *_cells(each))
        for job, each in estimates
    ]
    header, left = ("model", *_HEADER), ("left",) * 3 + ("right",) * 4
    if len(rows) > 1:
        total = _cells(_sum([each for _, each in estimates]))
        rows.append(("total", "", "", *total) if models else ("", "total", "", *total))
    first = 0 if models else 1
    say(markdown_table(header[first:], [row[first:] for row in rows], left[first:]))
    say("low / expected / high; nothing was asked. High is a bound, failed attempts aside.")


def _estimate(job: Job, asked: set[str], *, reasons: bool, batched: bool) -> Estimate:
    from pii_bench.systems.prompted import ChunkedSystem, PromptedSystem, VotedSystem

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


def _sum(estimates: Sequence[Estimate]) -> Estimate:
    costs = [each.usd for each in estimates]
    known = [usd for usd in costs if usd is not None]
    return Estimate(
        calls=sum(each.calls for each in estimates),
        input_tokens=sum((each.input_tokens for each in estimates), start=Range(0, 0, 0)),
        output_tokens=sum((each.output_tokens for each in estimates), start=Range(0, 0, 0)),
        usd=sum(known, start=Range(0.0, 0.0, 0.0)) if len(known) == len(costs) else None,
    )


def _cells(each: Estimate) -> tuple[str, ...]:
    def tokens(taken: Range[int]) -> str:
        return f"{taken.low:,} / {taken.expected:,} / {taken.high:,}"

    usd = each.usd
    cost = "unknown" if usd is None else f"{usd.low:.2f} / {usd.expected:.2f} / {usd.high:.2f}"
    return f"{each.calls:,}", tokens(each.input_tokens), tokens(each.output_tokens), cost
