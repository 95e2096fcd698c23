"""What diagnosis asks of stored runs that answer queries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pii_bench.datasets.sample import applicable
from pii_bench.tasks import Task

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pii_bench.ranking.stored import Run


def query_runs(runs: Iterable[Run]) -> tuple[Run, ...]:
    """The query-related runs on datasets that have queries."""
    return tuple(
        run
        for run in runs
        if run.task is Task.QUERY_RELATED and applicable(run.task, run.dataset.samples)
    )


def system_of(run: Run) -> tuple[object, ...]:
    """What two runs of one system on two datasets have in common."""
    card = run.manifest.system
    settings = sorted((key, repr(value)) for key, value in card.settings.items())
    return run.source, card.model, card.prompt, card.prompt_sha256, card.output, *settings
