"""Figures by the reason why a sample is difficult (`meta.reasons` of `frontier`)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pii_bench.datasets.sample import reasons_of
from pii_bench.ranking.scores import clusters_of, intervals, scores_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pii_bench.analysis.runs import EvaluatedRun, RunName
    from pii_bench.ranking.scores import Scores


@dataclass(frozen=True, slots=True)
class OfReason:
    """A figure over the scored samples that are difficult for one reason.

    Attributes:
        run: of which run.
        metric: column of the leaderboard.
        reason: as in `meta.reasons`; a sample with several counts for each of them.
        samples: how many are scored.
        value: the mean of their F1, or H.
        interval_low: the lower end of its 95 % interval; None where all samples share one
            description.
        interval_high: the upper end.
    """

    run: RunName
    metric: str
    reason: str
    samples: int
    value: float
    interval_low: float | None = None
    interval_high: float | None = None


def by_reason(runs: Iterable[EvaluatedRun]) -> list[OfReason]:
    """The figures of every run by reason; nothing for datasets that name none."""
    found = [pair for run in runs for pair in _of_run(run)]
    ends = intervals([scores for _, scores in found])
    return [
        replace(each, interval_low=interval.low, interval_high=interval.high) if interval else each
        for (each, _), interval in zip(found, ends, strict=True)
    ]


def _of_run(run: EvaluatedRun) -> Iterator[tuple[OfReason, Scores]]:
    groups: dict[str, set[str]] = {}
    for sample in run.samples:
        for reason in reasons_of(sample):
            groups.setdefault(reason, set()).add(sample.id)
    clusters = clusters_of(run.samples) if groups else {}
    for column, metric in run.metrics.items():
        scores = scores_of(run.evaluation, metric, clusters) if groups else None
        for reason, ids in sorted(groups.items()):
            if scores is not None and (part := scores.on(ids)) is not None:
                yield OfReason(run.name, column, reason, len(part.ids), part.figure), part
