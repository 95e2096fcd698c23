"""Mean scores over the samples of runs: over all, by sample size, and by reason of difficulty.

The paper says where its curves by size fall: past 5 subjects, 33 entities and 3,000 characters,
and little from 1 to 7 query-related entities. Each of these is an edge of a bin here; the paper
does not give its other edges, so those are ours.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeVar

from pii_bench.analysis.runs import BASE, EvaluatedRun, RunName
from pii_bench.datasets.sample import reasons_of
from pii_bench.datasets.statistics import published_statistics
from pii_bench.ranking.rows import TESTED, metrics_of
from pii_bench.ranking.scores import Scores, clusters_of, intervals, scores_of
from pii_bench.tasks import Task

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pii_bench.datasets.sample import Sample
    from pii_bench.ranking.rows import Row


HARDER: Final = ("hard", "distract")


@dataclass(frozen=True, slots=True)
class Headline:
    """A mean F1, or H, over the scored samples of a run; a published run counts as complete.

    Attributes:
        samples: number of scored samples; None for published figures.
        interval_low, interval_high: 95 % interval; None for published figures and if all
            samples share one description.
    """

    run: RunName
    metric: str
    samples: int | None
    value: float
    interval_low: float | None = None
    interval_high: float | None = None


def headlines(runs: Iterable[EvaluatedRun]) -> list[Headline]:
    """Return the means of each run (`EvaluatedRun.metrics`); none if no sample is scored."""
    return _with_intervals(
        (Headline(run.name, column, len(scores.ids), scores.figure), scores)
        for run in runs
        for column, scores in _scored(run)
    )


def published_headlines(rows: Iterable[Row]) -> list[Headline]:
    """Return the paper's figures as headlines.

    If the paper gives single and multi but not both together, adds the mean of the two weighted
    by its numbers of samples: its mean over both sets, up to rounding.

    Raises:
        InputFileError: the table of published statistics is broken.
    """
    headlines: list[Headline] = []
    both: dict[tuple[RunName, str], dict[str, float]] = defaultdict(dict)
    for row in rows:
        name = RunName(
            source=row.source,
            model=row.model,
            strategy=row.strategy,
            dataset=row.dataset,
            task=row.task,
            oracle=row.oracle,
            complete=True,
        )
        for metric in TESTED[row.task]:
            if (value := row.metrics.get(metric)) is not None:
                headlines.append(Headline(name, metric, None, value))
                both[replace(name, dataset="+".join(BASE)), metric][row.dataset] = value
    statistics = published_statistics()
    weights = {dataset: statistics[dataset].samples for dataset in BASE}
    for (name, metric), values in both.items():
        if values.keys() >= set(BASE) and name.dataset not in values:
            total = sum(weights[dataset] * values[dataset] for dataset in BASE)
            headlines.append(Headline(name, metric, None, total / sum(weights.values())))
    return headlines


@dataclass(frozen=True, slots=True)
class Drop:
    """The drop of a system on a harder set, from its figure on single and multi together.

    The samples of hard are in single and multi too, so its base includes them.
    """

    run: RunName
    metric: str
    base: float
    value: float

    @property
    def drop(self) -> float:
        """Base minus value; below 0 if the harder set has the higher figure."""
        return self.base - self.value

    @property
    def relative(self) -> float | None:
        """The drop as a share of the base; None if the base is 0."""
        return self.drop / self.base if self.base else None


def drops(headlines: Sequence[Headline]) -> list[Drop]:
    """Return the drops of every system that is complete on single, multi and a harder set."""
    complete = {(each.run, each.metric): each for each in headlines if each.run.complete}
    drops: list[Drop] = []
    for (run, metric), headline in complete.items():
        base = complete.get((replace(run, dataset="+".join(BASE)), metric))
        if run.dataset in HARDER and base is not None:
            drops.append(Drop(run, metric, base.value, headline.value))
    return drops


@dataclass(frozen=True, slots=True)
class Tradeoff:
    """The two parts of H of a masking run.

    Attributes:
        protection: mean share of the texts that are not needed of which nothing can be read.
        retention: mean share of the needed texts that can be read.
    """

    run: RunName
    protection: float
    retention: float


def tradeoffs(runs: Iterable[EvaluatedRun]) -> list[Tradeoff]:
    """Return those of the masking runs for which both parts of H are defined."""
    tradeoffs = []
    for run in runs:
        if run.name.task is Task.MASKING:
            means = metrics_of(run.evaluation)
            if "protection" in means and "retention" in means:
                tradeoffs.append(Tradeoff(run.name, means["protection"], means["retention"]))
    return tradeoffs


@dataclass(frozen=True, slots=True)
class Factor:
    """A size of a sample that scores are plotted against, and its bins.

    Attributes:
        label: of the axis.
        ends: last value of each bin, ascending; one more bin, at the end, is open.
    """

    name: str
    label: str
    size: Callable[[Sample], int]
    ends: tuple[int, ...]

    @property
    def counted(self) -> bool:
        """Whether each bin but the open one is a single number."""
        return self.ends == tuple(range(len(self.ends)))

    def place_of(self, size: int) -> int:
        """Return the index of a size's bin."""
        return bisect_left(self.ends, size)

    def bin_of(self, size: int) -> tuple[int, int | None]:
        """Return the first and last value of a size's bin; None for the end of the open one."""
        place = self.place_of(size)
        low = self.ends[place - 1] + 1 if place else 0
        return low, self.ends[place] if place < len(self.ends) else None


FACTORS: Final = (
    Factor("subjects", "Subjects", lambda s: len(s.subjects), tuple(range(10))),
    Factor("entities", "Entities", lambda s: len(s.entities), (6, 9, 12, 16, 33, 45, 55)),
    Factor(
        "characters",
        "Characters of the description",
        lambda s: len(s.description),
        (500, 750, 1000, 1500, 3000, 4500),
    ),
    Factor("related", "Query-related entities", lambda s: len(s.related), tuple(range(8))),
)


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """A mean F1, or H, over the scored samples of one bin; a bin without any has no point.

    Attributes:
        factor: a name in `FACTORS`.
        low, high: smallest and largest size in the bin; `high` is None for the open bin.
        interval_low, interval_high: 95 % interval; None if all samples share one description.
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
    """Return the points of every curve of every run."""
    return _with_intervals(pair for run in runs for pair in _points(run))


def _points(run: EvaluatedRun) -> Iterator[tuple[CurvePoint, Scores]]:
    for column, scores in _scored(run):
        for factor in FACTORS:
            # Detection does not see the query.
            if factor.name == "related" and run.name.task is Task.DETECTION:
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
    """A mean F1, or H, over the scored samples that are difficult for one reason.

    Attributes:
        reason: as in `meta.reasons`; a sample with several counts for each of them.
        interval_low, interval_high: 95 % interval; None if all samples share one description.
    """

    run: RunName
    metric: str
    reason: str
    samples: int
    value: float
    interval_low: float | None = None
    interval_high: float | None = None


def by_reason(runs: Iterable[EvaluatedRun]) -> list[OfReason]:
    """Return the means of every run by reason; none for datasets that give no reasons."""
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
    """Yield the scores of each leaderboard column that has any."""
    clusters = clusters_of(run.samples)
    for column, metric in run.metrics.items():
        if (scores := scores_of(run.evaluation, metric, clusters)) is not None:
            yield column, scores


_Mean = TypeVar("_Mean", Headline, CurvePoint, OfReason)


def _with_intervals(means: Iterable[tuple[_Mean, Scores]]) -> list[_Mean]:
    pairs = list(means)
    # Scores with the same clusters share their bootstrap draws.
    ends = intervals([scores for _, scores in pairs])
    return [
        replace(mean, interval_low=interval.low, interval_high=interval.high) if interval else mean
        for (mean, _), interval in zip(pairs, ends, strict=True)
    ]
