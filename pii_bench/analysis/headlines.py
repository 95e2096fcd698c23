"""The figures of each run as a whole, ours and the published ones, and the tables made of them."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from pii_bench.analysis.runs import BASE, EvaluatedRun, RunName
from pii_bench.datasets.sample import reasons_of
from pii_bench.datasets.statistics import published_statistics
from pii_bench.ranking.rows import metrics_of
from pii_bench.ranking.scores import Scores, clusters_of, intervals, scores_of
from pii_bench.tasks import Task

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pii_bench.ranking.rows import Row


_PUBLISHED_METRICS = ("strict_f1", "ent_f1", "f1")

HARDER: Final = ("hard", "distract")


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


@dataclass(frozen=True, slots=True)
class Drop:
    """A figure of a system on a harder set, against that on single and multi together.

    The samples of hard are in single and multi too: its drop is from a mean that they are
    part of.

    Attributes:
        run: the run on the harder set.
        metric: column of the leaderboard.
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
