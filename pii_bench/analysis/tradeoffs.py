"""Protection against retention: what masking hides rightly, and what it leaves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pii_bench.ranking.rows import metrics_of
from pii_bench.tasks import Task

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pii_bench.analysis.runs import EvaluatedRun, RunName


@dataclass(frozen=True, slots=True)
class Tradeoff:
    """The two parts of H of a run.

    Attributes:
        run: which it is.
        protection: the mean share of what is not needed of which nothing can be read.
        retention: the mean share of what is needed that can be read.
    """

    run: RunName
    protection: float
    retention: float


def tradeoffs(runs: Iterable[EvaluatedRun]) -> list[Tradeoff]:
    """Those of each run of masking; none where one of the two is undefined."""
    found = []
    for run in runs:
        if run.name.task is Task.MASKING:
            means = metrics_of(run.evaluation)
            if "protection" in means and "retention" in means:
                found.append(Tradeoff(run.name, means["protection"], means["retention"]))
    return found
