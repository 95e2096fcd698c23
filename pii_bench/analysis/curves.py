"""F1 against the size of what is asked: subjects, entities, characters, entities needed.

The paper's text tells where its curves fall: past 5 subjects, 33 entities and 3,000 characters,
and little from 1 to 7 query-related entities. Each of these is an edge of a bin here. Its other
edges are unknown; the rest are ours.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from pii_bench.ranking.scores import clusters_of, intervals, scores_of
from pii_bench.tasks import Task

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pii_bench.analysis.runs import EvaluatedRun, RunName
    from pii_bench.datasets.sample import Sample
    from pii_bench.ranking.scores import Scores


@dataclass(frozen=True, slots=True)
class Factor:
    """What a sample has more or less of.

    Attributes:
        name: as in the tables of results.
        label: as on an axis.
        size: how much of it a sample has.
        ends: the last value of each bin but the open one at the end, rising.
        of_query: whether it belongs to the query, of which detection is told nothing.
    """

    name: str
    label: str
    size: Callable[[Sample], int]
    ends: tuple[int, ...]
    of_query: bool = False

    @property
    def counted(self) -> bool:
        """Whether each bin but the open one is a single number."""
        return self.ends == tuple(range(len(self.ends)))

    def place_of(self, size: int) -> int:
        """The place of the bin of a size among all bins, from 0."""
        return bisect_left(self.ends, size)

    def bin_of(self, size: int) -> tuple[int, int | None]:
        """The first and last value of the bin of a size; None for the end of the open one."""
        place = self.place_of(size)
        low = self.ends[place - 1] + 1 if place else 0
        return low, self.ends[place] if place < len(self.ends) else None


FACTORS: Final[Mapping[str, Factor]] = MappingProxyType(
    {
        factor.name: factor
        for factor in (
            Factor("subjects", "Subjects", lambda s: len(s.subjects), tuple(range(10))),
            Factor(
                "entities",
                "Entities",
                lambda s: len(s.entities),
                (6, 9, 12, 16, 33, 45, 55),
            ),
            Factor(
                "characters",
                "Characters of the description",
                lambda s: len(s.description),
                (500, 750, 1000, 1500, 3000, 4500),
            ),
            Factor(
                "related",
                "Query-related entities",
                lambda s: len(s.related),
                tuple(range(8)),
                of_query=True,
            ),
        )
    }
)


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """The mean of a figure over the scored samples of one bin; a bin without any is absent.

    Attributes:
        run: of which run.
        metric: column of the leaderboard.
        factor: a key of `FACTORS`.
        low: the smallest size in the bin.
        high: the largest; None where the bin is open.
        samples: how many are scored.
        value: the mean of their F1, or H.
        interval_low: the lower end of its 95 % interval; None where all samples share one
            description.
        interval_high: the upper end.
    """

    run: RunName
    metric: str
    factor: str
    low: int
    high: int | None
    samples: int
    value: float
    interval_low: float | None = None
    interval_high: float | None = None


def curves(runs: Iterable[EvaluatedRun]) -> list[CurvePoint]:
    """The points of every curve of every run, with intervals."""
    points: list[CurvePoint] = []
    of_points: list[Scores] = []
    for run in runs:
        for point, scores in _points(run):
            points.append(point)
            of_points.append(scores)
    return [
        replace(point, interval_low=ends.low, interval_high=ends.high) if ends else point
        for point, ends in zip(points, intervals(of_points), strict=True)
    ]


def _points(run: EvaluatedRun) -> Iterable[tuple[CurvePoint, Scores]]:
    clusters = clusters_of(run.samples)
    for column, metric in run.metrics.items():
        scores = scores_of(run.evaluation, metric, clusters)
        for factor in FACTORS.values():
            if scores is None or (factor.of_query and run.name.task is Task.DETECTION):
                continue
            bins: dict[tuple[int, int | None], set[str]] = {}
            for sample in run.samples:
                bins.setdefault(factor.bin_of(factor.size(sample)), set()).add(sample.id)
            for low, high in sorted(bins, key=lambda ends: ends[0]):
                part = scores.on(bins[low, high])
                if part is not None:
                    name, size, figure = factor.name, len(part.ids), part.figure
                    yield CurvePoint(run.name, column, name, low, high, size, figure), part
