"""Prints what a run would take."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Final

from pii_bench.cli.terminal import echo, echo_json
from pii_bench.escaping import markdown_table
from pii_bench.runs.estimates import sum_estimates

if TYPE_CHECKING:
    from pii_bench.models.budget import Estimate, Range
    from pii_bench.runs.estimates import Estimates

_HEADER: Final = ("prompt", "dataset", "calls", "tokens in", "tokens out", "USD")


def print_estimates(estimates: Estimates, *, as_json: bool, models: bool = False) -> None:
    """Print what jobs would take: low, expected and high; with `models` the model of each."""
    if as_json:
        names = [(job.system.card, job.dataset.name, each) for job, each in estimates]
        echo_json(
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
        total = _cells(sum_estimates(each for _, each in estimates))
        rows.append(("total", "", "", *total) if models else ("", "total", "", *total))
    first = 0 if models else 1
    echo(markdown_table(header[first:], [row[first:] for row in rows], left[first:]))
    echo("low / expected / high; nothing was asked. High is a bound, failed attempts aside.")


def _cells(each: Estimate) -> tuple[str, ...]:
    def tokens(taken: Range[int]) -> str:
        return f"{taken.low:,} / {taken.expected:,} / {taken.high:,}"

    usd = each.usd
    cost = "unknown" if usd is None else f"{usd.low:.2f} / {usd.expected:.2f} / {usd.high:.2f}"
    return f"{each.calls:,}", tokens(each.input_tokens), tokens(each.output_tokens), cost
