"""Means over the samples of runs: of all, of those of one size, of those difficult for one reason.

The paper's text tells where its curves by size fall: past 5 subjects, 33 entities and 3,000
characters, and little from 1 to 7 query-related entities. Each of these is an edge of a bin here.
Its other edges are unknown; the rest are ours.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeVar

from pii_bench.analysis.runs import BASE, EvaluatedRun, RunName
from pii_bench.datasets.sample import reasons_of
from pii_bench.datasets.statistics import published_statistics
from pii_bench.ranking.rows import metrics_of
from pii_bench.ranking.scores import Scores, clusters_of, intervals, scores_of
from pii_bench.tasks import Task

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pii_bench.datasets.sample import Sample
    from pii_bench.ranking.rows import Row


HARDER: Final = ("hard", "distract")

_PUBLISHED_METRICS: Final = ("strict_f1", "ent_f1", "f1")


@dataclass(frozen=True, slots=True)
class Headline:
    """A figure over the scored samples of a run.

    Attributes:
        run: a published one counts as complete.
        samples: how many are scored; None for published figures.
        value: the mean of their F1, or H.
        interval_low, interval_high: its 95 % interval; None for published figures and where all
            samples share one description.
    """

    run: RunName
    metric: str
    samples: int | None
    value: float
    interval_low: float | None = None
    interval_high: float | None = None


def headlines(runs: Iterable[EvaluatedRun]) -> list[Headline]:
    """The figures of each run (`EvaluatedRun.metrics`); none where no sample is scored."""
    return _with_intervals(
        (Headline(run.name, column, len(scores.ids), scores.figure), scores)
        for run in runs
        for column, scores in _scored(run)
    )


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


@dataclass(frozen=True, slots=True)
class Drop:
    """A figure of a system on a harder set, against that on single and multi together.

    The samples of hard are in single and multi too: its drop is from a mean that they are
    part of.

    Attributes:
        run: the run on the harder set.
        base: the figure over all samples of single and multi.
        value: the figure on the harder set.
    """

    run: RunName
    metric: str
    base: float
    value: float

    @property
    def drop(self) -> float:
        """How much lower; below 0 where it is higher."""
        return self.base - self.value

    @property
    def relative(self) -> float | None:
        """The drop as a share of the base; None where the base is 0."""
        return self.drop / self.base if self.base else None


def drops(headlines: Sequence[Headline]) -> list[Drop]:
    """The drops of every system that is complete on single, multi and a harder set."""
    complete = {(each.run, each.metric): each for each in headlines if each.run.complete}
    found: list[Drop] = []
    for (run, metric), each in complete.items():
        base = complete.get((replace(run, dataset="+".join(BASE)), metric))
        if run.dataset in HARDER and base is not None:
            found.append(Drop(run, metric, base.value, each.value))
    return found


@dataclass(frozen=True, slots=True)
class Tradeoff:
    """The two parts of H of a run.

    Attributes:
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


FACTORS: Final[Mapping[str, Factor]] = {
    factor.name: factor
    for factor in (
        Factor("subjects", "Subjects", lambda s: len(s.subjects), tuple(range(10))),
        Factor("entities", "Entities", lambda s: len(s.entities), (6, 9, 12, 16, 33, 45, 55)),
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


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """The mean of a figure over the scored samples of one bin; a bin without any is absent.

    Attributes:
        factor: a key of `FACTORS`.
        low, high: the smallest and the largest size in the bin; None where it is open.
        samples: how many are scored.
        value: the mean of their F1, or H.
        interval_low, interval_high: its 95 % interval; None where all samples share one
            description.
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
    return _with_intervals(pair for run in runs for pair in _points(run))


def _points(run: EvaluatedRun) -> Iterator[tuple[CurvePoint, Scores]]:
    for column, scores in _scored(run):
        for factor in FACTORS.values():
            if factor.of_query and run.name.task is Task.DETECTION:
                continue
            bins: defaultdict[tuple[int, int | None], set[str]] = defaultdict(set)
            for sample in run.samples:
                bins[factor.bin_of(factor.size(sample))].add(sample.id)
            for low, high in sorted(bins, key=lambda ends: ends[0]):
                if (part := scores.on(bins[low, high])) is not None:
                    name, size, figure = factor.name, len(part.ids), part.figure
                    yield CurvePoint(run.name, column, name, low, high, size, figure), part


@dataclass(frozen=True, slots=True)
class OfReason:
    """A figure over the scored samples that are difficult for one reason.

    Attributes:
        reason: as in `meta.reasons`; a sample with several counts for each of them.
        samples: how many are scored.
        value: the mean of their F1, or H.
        interval_low, interval_high: its 95 % interval; None where all samples share one
            description.
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
    return _with_intervals(pair for run in runs for pair in _of_reasons(run))


def _of_reasons(run: EvaluatedRun) -> Iterator[tuple[OfReason, Scores]]:
    groups: defaultdict[str, set[str]] = defaultdict(set)
    for sample in run.samples:
        for reason in reasons_of(sample):
            groups[reason].add(sample.id)
    for column, scores in _scored(run):
        for reason, ids in sorted(groups.items()):
            if (part := scores.on(ids)) is not None:
                yield OfReason(run.name, column, reason, len(part.ids), part.figure), part


def _scored(run: EvaluatedRun) -> Iterator[tuple[str, Scores]]:
    """The scores by column of the leaderboard, where any sample is scored."""
    clusters = clusters_of(run.samples)
    for column, metric in run.metrics.items():
        if (scores := scores_of(run.evaluation, metric, clusters)) is not None:
            yield column, scores


_Mean = TypeVar("_Mean", Headline, CurvePoint, OfReason)


def _with_intervals(found: Iterable[tuple[_Mean, Scores]]) -> list[_Mean]:
    pairs = list(found)
    ends = intervals([scores for _, scores in pairs])
    return [
        replace(each, interval_low=interval.low, interval_high=interval.high) if interval else each
        for (each, _), interval in zip(pairs, ends, strict=True)
    ]
