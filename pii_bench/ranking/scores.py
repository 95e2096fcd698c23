"""One figure sample by sample, which samples belong together, and intervals by the bootstrap.

Draws are of whole descriptions, for samples that share one are not independent. They start from
one seed: equal scores give equal figures.

Percentile intervals (Efron and Tibshirani 1993, chapter 13): clusters are drawn with
replacement, as many as there are, and the mean over the samples drawn is taken, of H both means
at once; the interval holds the middle 95 % of such figures. Bias-corrected and accelerated (BCa)
ones agreed with them within 0.001 on 31 of 32 rows of our own systems and within 0.005 on the
other; simulated with 200 and 1,228 samples, the two held the mean in 94 to 96 % and in 95 to 98 %
of cases. The simpler kind needs no case of its own where all scores are equal. Few clusters and
skewed scores are beyond both: with 30 samples of which 96 % are right on average, they held it in
71 %.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from math import fsum
from typing import TYPE_CHECKING, Final, Self

import numpy as np

from pii_bench.scorer.measures import harmonic_mean

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from numpy.typing import NDArray

    from pii_bench.datasets.sample import Sample
    from pii_bench.runs.evaluation import Evaluation

MASKED_TEXT: Final = "masked_text"
"""In place of a metric of an evaluation: H of its samples' protection and retention."""

LEVEL: Final = 0.95
RESAMPLES: Final = 4_000
SEED: Final = 250218545
"""Of every draw: the number of the paper, arXiv:2502.18545."""

# Draws at a time, and resamples at most.
_DRAWS: Final = 1_000_000
_CHUNK: Final = 100
# Above so many clusters an interval is a few thousandths wide: fewer resamples tell the digits
# that are shown, and one at a time keeps the draws in little memory.
_MANY: Final = 100_000
_RESAMPLES_OF_MANY: Final = 400


@dataclass(frozen=True, slots=True)
class Scores:
    """One figure of one system on at least one sample, or the difference of two.

    Attributes:
        ids: the samples.
        clusters: of each sample, the name of its cluster.
        values: of each sample, the figure.
        parts: None where the figure of all samples is the mean of theirs. Where it is H, the
            harmonic mean of two means: of each sample, what these two are means of.

    Raises:
        ValueError: they are empty or not of one length.
    """

    ids: tuple[str, ...]
    clusters: tuple[str, ...]
    values: tuple[float, ...]
    parts: tuple[tuple[float, ...], tuple[float, ...]] | None = None

    def __post_init__(self) -> None:
        lengths = len(self.ids), len(self.clusters), *map(len, (self.values, *self.columns))
        if not self.ids or len(set(lengths)) > 1:
            raise ValueError(f"ids, clusters and values must be as many and some: {lengths}")

    @classmethod
    def harmonic(
        cls,
        ids: tuple[str, ...],
        clusters: tuple[str, ...],
        first: tuple[float, ...],
        second: tuple[float, ...],
    ) -> Self:
        """Scores whose figure is the harmonic mean of the means of two figures."""
        values = tuple(harmonic_mean(a, b) for a, b in zip(first, second, strict=True))
        return cls(ids, clusters, values, (first, second))

    @property
    def columns(self) -> tuple[tuple[float, ...], ...]:
        """What the figure is made of, by sample: `values`, or both parts."""
        return (self.values,) if self.parts is None else self.parts

    @property
    def figure(self) -> float:
        """The mean over the samples, each of the same weight; of parts, H of their means."""
        means = [fsum(column) / len(column) for column in self.columns]
        return means[0] if self.parts is None else harmonic_mean(*means)

    @property
    def contributions(self) -> tuple[float, ...]:
        """Of each sample, what it adds to the figure, whose mean they have.

        Of parts p and r with the means P and R: the slopes of H there, 2R^2 / (P + R)^2 by p and
        2P^2 / (P + R)^2 by r, so that they vary as H does to first order (delta method).
        """
        if self.parts is None:
            return self.values
        first, second = (fsum(column) / len(column) for column in self.parts)
        total = first + second
        if not total:
            return self.values
        slopes = 2 * (second / total) ** 2, 2 * (first / total) ** 2
        return tuple(slopes[0] * p + slopes[1] * r for p, r in zip(*self.parts, strict=True))

    def on(self, ids: Collection[str]) -> Self | None:
        """The figure on those of its samples alone; None where there is none."""
        kept = [place for place, sample_id in enumerate(self.ids) if sample_id in ids]
        if not kept:
            return None

        def of(column: tuple[float, ...]) -> tuple[float, ...]:
            return tuple(column[place] for place in kept)

        return type(self)(
            ids=tuple(self.ids[place] for place in kept),
            clusters=tuple(self.clusters[place] for place in kept),
            values=of(self.values),
            parts=None if self.parts is None else (of(self.parts[0]), of(self.parts[1])),
        )

    def minus(self, other: Scores) -> Scores:
        """The difference of contributions sample by sample; its mean is that of the figures.

        Raises:
            ValueError: they are of different samples.
        """
        require_same_samples([self, other])
        pairs = zip(self.contributions, other.contributions, strict=True)
        return Scores(self.ids, self.clusters, tuple(a - b for a, b in pairs))


def clusters_of(samples: Sequence[Sample]) -> dict[str, str]:
    """Sample id to its cluster: the id of the first sample with the same description.

    Twins ask several queries about one description. Conversations of `distract` that share
    some of their parts, not all, are clusters of their own.
    """
    clusters = Clusters()
    for sample in samples:
        clusters.add(sample)
    return clusters.by_id


class Clusters:
    """The clusters of samples that come one by one; no description is kept.

    Attributes:
        by_id: sample id to its cluster (`clusters_of`).
    """

    def __init__(self) -> None:
        self.by_id: dict[str, str] = {}
        self._first: dict[bytes, str] = {}

    def add(self, sample: Sample) -> None:
        """Put a sample into the cluster of those with its description."""
        text = sample.description.encode("utf-8", "surrogatepass")
        first = self._first.setdefault(hashlib.sha256(text).digest(), sample.id)
        self.by_id[sample.id] = first


def scores_of(evaluation: Evaluation, metric: str, clusters: Mapping[str, str]) -> Scores | None:
    """F1 of a metric of an evaluation, sample by sample; None where none is scored.

    Args:
        evaluation: what was scored.
        metric: a key of its samples' metrics; or `MASKED_TEXT`, of masking.
        clusters: sample id to cluster, for all of its samples.
    """
    if not evaluation.scores:
        return None
    ids = tuple(score.id for score in evaluation.scores)
    named = tuple(clusters[sample_id] for sample_id in ids)
    if metric == MASKED_TEXT:
        texts = evaluation.masked_texts
        protection = tuple(text.protection for text in texts)
        return Scores.harmonic(ids, named, protection, tuple(text.retention for text in texts))
    return Scores(ids, named, tuple(score.metrics[metric].f1 for score in evaluation.scores))


def require_same_samples(scores: Sequence[Scores]) -> None:
    """See that all are of the same samples in the same order and clusters.

    Raises:
        ValueError: they are not.
    """
    if len({(each.ids, each.clusters) for each in scores}) > 1:
        raise ValueError("scores must be of the same samples in the same order and clusters")


def cluster_sums(scores: Sequence[Scores]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Sum the columns of each cluster, in the order in which the clusters first appear.

    Args:
        scores: at least one, all of the same clusters in the same order.

    Returns:
        Sums, one row per cluster and one column per column of the members of `scores`; and the
        number of samples in each cluster.
    """
    numbers: dict[str, int] = {}
    clusters = scores[0].clusters
    places = np.array([numbers.setdefault(cluster, len(numbers)) for cluster in clusters])
    values = np.array([column for each in scores for column in each.columns]).T
    sums = np.zeros((len(numbers), values.shape[1]))
    np.add.at(sums, places, values)
    return sums, np.bincount(places).astype(np.float64)


def figures_of(columns: NDArray[np.float64]) -> NDArray[np.float64]:
    """The figure of means, or of sums, of its columns.

    Args:
        columns: any shape; the last axis has the columns of one figure.

    Returns:
        Without the last axis: the column itself, or 2ab / (a + b) of two (0 where both are 0).
    """
    if columns.shape[-1] == 1:
        return columns[..., 0]
    first, second = columns[..., 0], columns[..., 1]
    total = first + second
    return 2 * first * second / np.where(total > 0, total, 1.0)


@dataclass(frozen=True, slots=True)
class Interval:
    """From `low` to `high`, in the unit of the figure."""

    low: float
    high: float


def intervals(scores: Sequence[Scores]) -> list[Interval | None]:
    """The 95 % interval of each figure.

    Scores with the same clusters share their draws, so all rows of a leaderboard cost little
    more than one. What other scores are given does not change an interval.

    Returns:
        One per member of `scores`; None where all samples are of one cluster, which tells
        nothing about others.
    """
    alike: dict[tuple[str, ...], list[int]] = {}
    for place, each in enumerate(scores):
        alike.setdefault(each.clusters, []).append(place)
    found: dict[int, Interval] = {}
    for clusters, places in alike.items():
        if len(set(clusters)) > 1:
            figures = _resampled([scores[place] for place in places])
            found |= dict(zip(places, map(_ends, figures), strict=True))
    return [found.get(place) for place in range(len(scores))]


def difference_interval(first: Scores, second: Scores) -> Interval | None:
    """The 95 % interval of the difference of two figures, from the same draws of clusters.

    Returns:
        None where all samples are of one cluster.

    Raises:
        ValueError: they are of different samples.
    """
    require_same_samples([first, second])
    if len(set(first.clusters)) == 1:
        return None
    one, other = _resampled([first, second])
    return _ends(one - other)


def _ends(figures: NDArray[np.float64]) -> Interval:
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(figures, [tail, 1 - tail])
    # The order of a sum is the processor's; what it changes must not show in print.
    return Interval(round(float(low), 12), round(float(high), 12))


def _resampled(scores: Sequence[Scores]) -> list[NDArray[np.float64]]:
    """The figure of each of some scores in each resample, all from the same draws."""
    means = _resampled_means(*cluster_sums(scores))
    figures = []
    place = 0
    for each in scores:
        width = len(each.columns)
        figures.append(figures_of(means[:, place : place + width]))
        place += width
    return figures


def _resampled_means(sums: NDArray[np.float64], sizes: NDArray[np.float64]) -> NDArray[np.float64]:
    """The means of each resample: shape (resamples, columns of `sums`)."""
    # Its stream is frozen (NEP 19); that of a Generator may change with a release of numpy.
    random = np.random.RandomState(SEED)
    count = len(sizes)
    columns = np.column_stack([sums, sizes])
    resamples = RESAMPLES if count <= _MANY else _RESAMPLES_OF_MANY
    most = max(1, min(_CHUNK, _DRAWS // count))
    means = []
    for start in range(0, resamples, most):
        chunk = min(most, resamples - start)
        first = np.arange(chunk)[:, np.newaxis] * count
        drawn = first + random.randint(count, size=(chunk, count), dtype=np.int64)
        times = np.bincount(drawn.ravel(), minlength=chunk * count).reshape(chunk, count)
        totals = times.astype(np.float64) @ columns
        means.append(totals[:, :-1] / totals[:, -1:])
    return np.concatenate(means)
