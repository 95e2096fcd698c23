"""The figures of each run as a whole, ours and the published ones in one form."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pii_bench.analysis.runs import BASE, EvaluatedRun, RunName
from pii_bench.datasets.statistics import published_statistics
from pii_bench.ranking.scores import Scores, clusters_of, intervals, scores_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pii_bench.ranking.rows import Row

_PUBLISHED_METRICS = ("strict_f1", "ent_f1", "f1")


@dataclass(frozen=True, slots=True)
class Headline:
    """A figure over the scored samples of a run.

    Attributes:
        run: of which run; a published one counts as complete.
        metric: column of the leaderboard.
        samples: how many are scored; None for published figures.
        value: the mean of their F1, or H.
        interval_low: the lower end of its 95 % interval; None for published figures and
            where all samples share one description.
        interval_high: the upper end.
    """

    run: RunName
    metric: str
    samples: int | None
    value: float
    interval_low: float | None = None
    interval_high: float | None = None


def headlines(runs: Iterable[EvaluatedRun]) -> list[Headline]:
    """The figures of each run (`EvaluatedRun.metrics`); none where no sample is scored."""
    figures: list[tuple[RunName, str, Scores]] = []
    for run in runs:
        clusters = clusters_of(run.samples)
        for column, metric in run.metrics.items():
            scores = scores_of(run.evaluation, metric, clusters)
            if scores is not None:
                figures.append((run.name, column, scores))
    ends = intervals([scores for _, _, scores in figures])
    return [
        Headline(
            run=name,
            metric=column,
            samples=len(scores.ids),
            value=scores.figure,
            interval_low=interval.low if interval else None,
            interval_high=interval.high if interval else None,
        )
        for (name, column, scores), interval in zip(figures, ends, strict=True)
    ]


def published_headlines(rows: Iterable[Row]) -> list[Headline]:
    """The same of the paper's figures.

    Where it has single and multi but not both together, these are the two weighted by its
    numbers of samples, so as near to its mean over them as its rounding lets us come.

    Raises:
        InputFileError: the table of published statistics is broken.
    """
    found: list[Headline] = []
    sets: dict[tuple[RunName, str], dict[str, float]] = defaultdict(dict)
    for row in rows:
        for metric in _PUBLISHED_METRICS:
            if (value := row.metrics.get(metric)) is not None:
                found.append(Headline(_name(row, row.dataset), metric, None, value))
                sets[_name(row, "+".join(BASE)), metric][row.dataset] = value
    sizes = {name: each.samples for name, each in published_statistics().items()}
    for (name, metric), values in sets.items():
        if values.keys() >= set(BASE) and name.dataset not in values:
            found.append(Headline(name, metric, None, _weighted(values, sizes)))
    return found


def _name(row: Row, dataset: str) -> RunName:
    return RunName(
        source=row.source,
        model=row.model,
        strategy=row.strategy,
        dataset=dataset,
        task=row.task,
        oracle=row.oracle,
        complete=True,
    )


def _weighted(values: Mapping[str, float], sizes: Mapping[str, int]) -> float:
    return sum(sizes[name] * values[name] for name in BASE) / sum(sizes[name] for name in BASE)
