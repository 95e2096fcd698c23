"""Intervals of figures by the bootstrap, clustered on the description.

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

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from pii_bench.ranking.statistics.scores import cluster_sums, figures_of, require_same_samples

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from pii_bench.ranking.statistics.scores import Scores

LEVEL: Final = 0.95
RESAMPLES: Final = 4_000
SEED: Final = 250218545
"""Of every draw in this package: the number of the paper, arXiv:2502.18545."""

# Draws at a time, and resamples at most.
_DRAWS: Final = 1_000_000
_CHUNK: Final = 100
# Above so many clusters an interval is a few thousandths wide: fewer resamples tell the digits
# that are shown, and one at a time keeps the draws in little memory.
_MANY: Final = 100_000
_RESAMPLES_OF_MANY: Final = 400


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
