"""Whether systems differ: paired tests, comparisons, smallest detectable differences and ranks.

The tests are permutation tests, corrected for their number. If two systems were alike, the
answers of one to the samples of a description could as well be those of the other. So the
answers of each cluster are exchanged at random, both figures are computed anew, and p is the
share of exchanges whose difference of figures is at least as large as the one observed, up or
down (Fisher 1935; Dror et al. 2018, doi:10.18653/v1/P18-1128, recommend it). Of means, an
exchange flips the sign of the cluster's difference.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import sqrt
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from pii_bench.ranking.scores import (
    SEED,
    Interval,
    cluster_sums,
    difference_interval,
    figures_of,
    intervals,
    require_same_samples,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from pii_bench.ranking.scores import Scores

FLIPS: Final = 10_000
EXACT_UP_TO: Final = 13
"""Clusters that differ: as long as all their flips are fewer than `FLIPS`, each is taken."""

_CHUNK: Final = 1_000
# Sums of scores, each from 0 to 1: less is the rounding of a sum.
_ROUNDING: Final = 1e-9

ALPHA: Final = 0.05
POWER: Final = 0.8

SIGNIFICANT: Final = 0.05
"""A difference is shown where p, after Holm's correction, is below this."""


def p_values(scores: Sequence[Scores]) -> dict[tuple[int, int], float]:
    """Two-sided p of the difference of figures, of each pair of systems.

    Exact where at most `EXACT_UP_TO` clusters differ. Else of `FLIPS` random flips, the same
    for all pairs; the flip observed counts as one more, so that p is never 0 (Phipson and
    Smyth 2010, doi:10.2202/1544-6115.1585). If no random flip reaches the difference, p is at
    most 1 / (FLIPS + 1), and at most a bound on the exact p (`_bound`). Without it, no pair of 33
    systems or more could ever pass Holm's correction.

    Args:
        scores: of each system, all of the same samples and of one kind of figure.

    Returns:
        (i, j) with i < j to p.

    Raises:
        ValueError: the samples differ, or the kinds of figure.
    """
    require_same_samples(scores)
    if not scores:
        return {}
    if len({len(each.columns) for each in scores}) > 1:
        raise ValueError("scores must be of one kind of figure, means or H")
    whole, _ = cluster_sums(scores)
    # Clusters, systems, columns: figures of sums are as good as figures of means.
    sums = whole.reshape(len(whole), len(scores), -1)
    found: dict[tuple[int, int], float] = {}
    many: dict[tuple[int, int], _Pair] = {}
    for i, j in combinations(range(len(scores)), 2):
        pair = _Pair.of(sums[:, i], sums[:, j])
        if len(pair.halves) <= EXACT_UP_TO:
            found[i, j] = _exact(pair)
        else:
            many[i, j] = pair
    if many:
        reached = _reached(sums)
        found |= {key: _of_random_flips(int(reached[key]), pair) for key, pair in many.items()}
    return dict(sorted(found.items()))


def holm(p: Sequence[float]) -> list[float]:
    """Holm's correction for the number of tests (1979, Scandinavian Journal of Statistics 6).

    The smallest of m values is multiplied by m, the next by m - 1 and so on; none becomes
    smaller than one before it, nor larger than 1. The chance of any false discovery among
    those below 0.05 is at most 5 %.

    Returns:
        The corrected values in the order of `p`.
    """
    order = sorted(range(len(p)), key=p.__getitem__)
    corrected = [0.0] * len(p)
    largest = 0.0
    for rank, place in enumerate(order):
        largest = max(largest, min(1.0, (len(p) - rank) * p[place]))
        corrected[place] = largest
    return corrected


class _Pair(NamedTuple):
    """Two systems: their totals are `middle` plus and minus the sum of `halves`, by column.

    Attributes:
        middle: half of both totals.
        halves: of each cluster that differs, half of the difference; one row per cluster.
    """

    middle: NDArray[np.float64]
    halves: NDArray[np.float64]

    @classmethod
    def of(cls, first: NDArray[np.float64], second: NDArray[np.float64]) -> _Pair:
        halves = (first - second) / 2
        differ = (np.abs(halves) > _ROUNDING / 2).any(axis=1)
        return cls((first + second).sum(axis=0) / 2, halves[differ])

    def differences(self, flipped: NDArray[np.float64]) -> NDArray[np.float64]:
        """The differences of the figures where the sum of the halves is this, by column."""
        return figures_of(self.middle + flipped) - figures_of(self.middle - flipped)

    @property
    def observed(self) -> float:
        """The difference of the figures as they are."""
        return abs(float(self.differences(self.halves.sum(axis=0))))


def _exact(pair: _Pair) -> float:
    if not len(pair.halves):
        return 1.0
    # A flip of all is as far from 0, so the first may keep its sign.
    others = len(pair.halves) - 1
    bits = np.arange(2**others)[:, np.newaxis] >> np.arange(others) & 1
    flipped = pair.halves[0] + (1.0 - 2.0 * bits) @ pair.halves[1:]
    return float(np.mean(np.abs(pair.differences(flipped)) >= pair.observed - _ROUNDING))


def _of_random_flips(reached: int, pair: _Pair) -> float:
    p = (reached + 1) / (FLIPS + 1)
    return p if reached else min(p, _bound(pair))


def _bound(pair: _Pair) -> float:
    """A bound on the exact p that needs no flips.

    Of means it is Hoeffding's (1963, doi:10.1080/01621459.1963.10500830): with D the clusters'
    differences and T their sum, 2 exp(-T^2 / (2 sum D^2)).

    H has the slopes 2 (1 - t)^2 by protection and 2 t^2 by retention, with t = P / (P + R). By
    the mean value theorem a flip by x and y changes the difference of two H by 4 ((1 - t)^2 x +
    t^2 y) at some t that flips can reach. Where this is above 0 it is largest at one of the ends
    of the range of t: it is convex in t where x + y >= 0, and else has its only turn outside of
    0 to 1 or below 0. So a flip that reaches T reaches it at one of both ends, and Hoeffding's
    bounds for the two are added.
    """
    least, most = (
        pair.middle - np.abs(pair.halves).sum(axis=0),
        pair.middle + np.abs(pair.halves).sum(axis=0),
    )
    slopes = [np.array([2.0])]
    if len(pair.middle) > 1:
        ends = least[0] / (least[0] + most[1]), most[0] / (most[0] + least[1])
        slopes = [4 * np.array([(1 - t) ** 2, t**2]) for t in ends]
    squares = [float(np.square(pair.halves @ each).sum()) for each in slopes]
    reached = pair.observed**2
    return min(1.0, sum(2 * float(np.exp(-reached / (2 * square))) for square in squares if square))


def _reached(sums: NDArray[np.float64]) -> NDArray[np.int64]:
    """How many random flips reach the difference of each pair of systems.

    The sum of flipped differences is the difference of two flipped sums, so that each column is
    flipped once, not once per pair.

    Args:
        sums: clusters, systems, columns.

    Returns:
        Counts at [i, j] with i < j; the rest is 0.
    """
    # As in the bootstrap, a stream that no release of numpy changes.
    random = np.random.RandomState(SEED)
    clusters, systems, columns = sums.shape
    totals = sums.sum(axis=0)
    figures = figures_of(totals)
    reached = np.zeros((systems, systems), dtype=np.int64)
    flat = sums.reshape(clusters, -1)
    for _ in range(FLIPS // _CHUNK):
        signs = random.randint(2, size=(_CHUNK, clusters), dtype=np.int8) * 2.0 - 1.0
        flipped = (signs @ flat).reshape(_CHUNK, systems, columns)
        for i in range(systems - 1):
            middle = (totals[i] + totals[i + 1 :]) / 2
            halves = (flipped[:, [i]] - flipped[:, i + 1 :]) / 2
            distance = np.abs(figures_of(middle + halves) - figures_of(middle - halves))
            limit = np.abs(figures[i] - figures[i + 1 :]) - _ROUNDING
            reached[i, i + 1 :] += (distance >= limit).sum(axis=0)
    return reached


def smallest_detectable(first: Scores, second: Scores) -> float | None:
    """The difference of figures that a two-sided test at 5 % finds with a chance of 80 %.

    (t[1 - ALPHA / 2] + t[POWER]) times the standard error of the difference, with quantiles
    of Student's t for one degree of freedom less than there are clusters (Bloom 1995,
    doi:10.1177/0193841X9501900504). The standard error is that of a mean over clusters
    (Miller 2024, arXiv:2411.00640, with the usual factor for few clusters): of N samples in G
    clusters, D the sum of the paired differences in a cluster, n its samples and m the mean
    difference, sqrt(G / (G - 1) * sum (D - m n)^2) / N. Of H, the differences are those of the
    contributions (`Scores.contributions`). It is of one test, without Holm's correction.

    Returns:
        In the unit of the figure; 0 where the systems differ by the same in every sample. None
        where no difference can be expected to show: it would be more than 1, or there are
        fewer than six clusters, for whose sign flips p is never below 5 %.

    Raises:
        ValueError: they are of different samples.
    """
    # Slow to import, and only needed here.
    from scipy.special import stdtrit

    sums, sizes = cluster_sums([first.minus(second)])
    differences, clusters = sums[:, 0], len(sizes)
    if 2 ** (1 - clusters) >= ALPHA:
        return None
    apart = differences - differences.sum() / sizes.sum() * sizes
    error = sqrt(clusters / (clusters - 1) * float(np.square(apart).sum())) / float(sizes.sum())
    quantiles = stdtrit(clusters - 1, [1 - ALPHA / 2, POWER])
    # As in the intervals: the rounding of a sum must not show in print.
    detectable = round(float(quantiles.sum()) * error, 12)
    return detectable if detectable <= 1 else None


@dataclass(frozen=True, slots=True)
class Comparison:
    """One figure of two systems.

    Attributes:
        first: of the first system, on the samples in common.
        second: of the second, on the same.
        difference: first minus second.
        first_interval: of the first figure; as the next two, None for samples of one cluster.
        second_interval: of the second figure.
        difference_interval: of the difference.
        p: of the difference, two-sided, not corrected.
        detectable: the smallest difference that these samples can be expected to show;
            None where they can show none.
    """

    first: Scores
    second: Scores
    difference: float
    first_interval: Interval | None
    second_interval: Interval | None
    difference_interval: Interval | None
    p: float
    detectable: float | None

    def most_different(self, count: int) -> list[tuple[str, float, float]]:
        """At most `count` samples that differ, the most different first: id and both figures.

        Of samples that differ as much, those that come first in the dataset.
        """
        differing = [(abs(a - b), sample_id, a, b) for sample_id, a, b in self._samples() if a != b]
        differing.sort(key=lambda sample: -sample[0])
        return [(sample_id, a, b) for _, sample_id, a, b in differing[:count]]

    def tally(self) -> tuple[int, int, int]:
        """Samples on which the first is higher, the second is higher, both are equal."""
        signs = [(a > b) - (a < b) for _, a, b in self._samples()]
        return signs.count(1), signs.count(-1), signs.count(0)

    def _samples(self) -> Iterator[tuple[str, float, float]]:
        return zip(self.first.ids, self.first.values, self.second.values, strict=True)


def compare(first: Scores, second: Scores) -> Comparison | None:
    """Compare two systems; None where they have no sample in common.

    Args:
        first: of one system, on one dataset.
        second: of the other, on the same dataset in the same order; other samples may lack.

    Raises:
        ValueError: the samples in common are in another order or other clusters.
    """
    one, other = first.on(set(second.ids)), second.on(set(first.ids))
    if one is None or other is None:
        return None
    first_interval, second_interval = intervals([one, other])
    return Comparison(
        first=one,
        second=other,
        difference=one.figure - other.figure,
        first_interval=first_interval,
        second_interval=second_interval,
        difference_interval=difference_interval(one, other),
        p=p_values([one, other])[0, 1],
        detectable=smallest_detectable(one, other),
    )


@dataclass(frozen=True, slots=True)
class Standing:
    """The place of a system among others.

    Attributes:
        rank: one more than the number of systems that are shown to be better.
        detectable: the smallest difference to the best of the others that the samples can be
            expected to show; None without others and where they can show none.
    """

    rank: int
    detectable: float | None


def ranked(scores: Sequence[Scores]) -> list[Standing]:
    """Rank systems on the same samples, all pairs tested together.

    A system is shown to be better where its figure is larger and Holm's correction over all
    pairs leaves p below 0.05. "Not shown to differ" is not transitive: if only the first of
    three differs from the last, the ranks are 1, 1, 2, and the second does not differ from
    the last in spite of its rank. For the same reason a system that differs from another very
    unevenly may have a smaller rank than one with a higher figure. So a rank counts those that
    are better for certain; whether two given systems differ, only their own test tells.

    Args:
        scores: of each system, in any order.

    Returns:
        One per system, in the order given.

    Raises:
        ValueError: the samples differ.
    """
    pairs = p_values(scores)
    figures = [each.figure for each in scores]
    better = [0] * len(scores)
    for (i, j), p in zip(pairs, holm(list(pairs.values())), strict=True):
        if p < SIGNIFICANT:
            better[i if figures[i] < figures[j] else j] += 1
    best = sorted(range(len(scores)), key=figures.__getitem__, reverse=True)[:2]
    standings = []
    for place, each in enumerate(scores):
        rival = next((other for other in best if other != place), None)
        detectable = None if rival is None else smallest_detectable(each, scores[rival])
        standings.append(Standing(1 + better[place], detectable))
    return standings
