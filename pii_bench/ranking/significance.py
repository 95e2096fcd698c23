"""Paired tests, comparisons, smallest detectable differences and ranks of systems.

The tests are permutation tests. If two systems were equal, the answers of one to the samples of a
description could as well be those of the other. So the answers are exchanged at random, by
cluster, and p is the share of exchanges whose difference of figures is at least as large as the
observed one, in either direction (Fisher 1935; recommended by Dror et al. 2018,
doi:10.18653/v1/P18-1128). For means, an exchange flips the sign of the cluster's difference.
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
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from pii_bench.ranking.scores import Scores

FLIPS: Final = 10_000
EXACT_UP_TO: Final = 13
"""Up to this number of differing clusters all flips are tried: they are fewer than `FLIPS`."""

_CHUNK: Final = 1_000
# A smaller difference between sums of scores is due to rounding.
_ROUNDING: Final = 1e-9

ALPHA: Final = 0.05
"""A difference is significant if p, after Holm's correction, is below this."""

POWER: Final = 0.8


def p_values(scores: Sequence[Scores]) -> dict[tuple[int, int], float]:
    """Return the two-sided p of the difference between each pair of systems.

    p is exact if at most `EXACT_UP_TO` clusters differ. Otherwise it comes from `FLIPS` random
    flips, the same for all pairs, and the observed one, so that it is never 0 (Phipson and Smyth
    2010, doi:10.2202/1544-6115.1585). If no random flip reaches the difference, p is at most
    1 / (FLIPS + 1) and at most a bound on the exact p (`_bound`); without the bound no pair of 33
    systems or more could pass Holm's correction.

    Returns:
        (i, j) with i < j to p.

    Raises:
        ValueError: the samples or the kinds of figure (mean or H) differ.
    """
    require_same_samples(scores)
    if not scores:
        return {}
    if len({len(each.columns) for each in scores}) > 1:
        raise ValueError("scores must be of one kind of figure, means or H")
    whole, _ = cluster_sums(scores)
    # Shape (clusters, systems, columns). Sums serve as well as means here.
    sums = whole.reshape(len(whole), len(scores), -1)
    reached: NDArray[np.int64] | None = None
    result: dict[tuple[int, int], float] = {}
    for i, j in combinations(range(len(scores)), 2):
        pair = _Pair.of(sums[:, i], sums[:, j])
        if len(pair.halves) <= EXACT_UP_TO:
            result[i, j] = _exact(pair)
            continue
        if reached is None:
            reached = _reached(sums)
        count = int(reached[i, j])
        p = (count + 1) / (FLIPS + 1)
        result[i, j] = p if count else min(p, _bound(pair))
    return result


def holm(p: Sequence[float]) -> list[float]:
    """Holm's correction for the number of tests (1979, Scandinavian Journal of Statistics 6).

    The smallest of m values is multiplied by m, the next by m - 1 and so on; no corrected value
    is smaller than the one before it or larger than 1. The chance of any false discovery among
    those below 0.05 is at most 5 %.
    """
    order = sorted(range(len(p)), key=p.__getitem__)
    corrected = [0.0] * len(p)
    largest = 0.0
    for rank, place in enumerate(order):
        largest = max(largest, min(1.0, (len(p) - rank) * p[place]))
        corrected[place] = largest
    return corrected


class _Pair(NamedTuple):
    """Two systems. Their totals are `middle` plus and minus the sum of `halves`, by column.

    Attributes:
        middle: the mean of both totals.
        halves: half of the difference in each differing cluster, one row per cluster.
    """

    middle: NDArray[np.float64]
    halves: NDArray[np.float64]

    @classmethod
    def of(cls, first: NDArray[np.float64], second: NDArray[np.float64]) -> _Pair:
        halves = (first - second) / 2
        differ = (np.abs(halves) > _ROUNDING / 2).any(axis=1)
        return cls((first + second).sum(axis=0) / 2, halves[differ])

    def differences(self, flipped: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the differences of the figures, given the sums of the flipped halves."""
        return figures_of(self.middle + flipped) - figures_of(self.middle - flipped)

    @property
    def observed(self) -> float:
        """The observed difference of the figures."""
        return abs(float(self.differences(self.halves.sum(axis=0))))


def _exact(pair: _Pair) -> float:
    if not len(pair.halves):
        return 1.0
    # By symmetry the first half can keep its sign.
    others = len(pair.halves) - 1
    bits = np.arange(2**others)[:, np.newaxis] >> np.arange(others) & 1
    flipped = pair.halves[0] + (1.0 - 2.0 * bits) @ pair.halves[1:]
    return float(np.mean(np.abs(pair.differences(flipped)) >= pair.observed - _ROUNDING))


def _bound(pair: _Pair) -> float:
    """Return an upper bound on the exact p without flips.

    For means it is Hoeffding's (1963, doi:10.1080/01621459.1963.10500830): with D the clusters'
    differences and T their sum, 2 exp(-T^2 / (2 sum D^2)).

    H has the slopes 2 (1 - t)^2 for protection and 2 t^2 for retention, with t = P / (P + R). By
    the mean value theorem a flip by x and y changes the difference of two H by 4 ((1 - t)^2 x +
    t^2 y) at some t that flips can reach. Where this is positive, it is largest at an end of the
    range of t: it is convex in t if x + y >= 0, and otherwise has its only extremum outside 0 to
    1 or below 0. So a flip that reaches T reaches it at one of the two ends, and Hoeffding's
    bounds for both are added.
    """
    reach = np.abs(pair.halves).sum(axis=0)
    least, most = pair.middle - reach, pair.middle + reach
    slopes = [np.array([2.0])]
    if len(pair.middle) > 1:
        ends = least[0] / (least[0] + most[1]), most[0] / (most[0] + least[1])
        slopes = [4 * np.array([(1 - t) ** 2, t**2]) for t in ends]
    squares = [float(np.square(pair.halves @ slope).sum()) for slope in slopes]
    observed = pair.observed**2
    bounds = [2 * float(np.exp(-observed / (2 * square))) for square in squares if square]
    return min(1.0, sum(bounds))


def _reached(sums: NDArray[np.float64]) -> NDArray[np.int64]:
    """Count the random flips that reach the difference of each pair of systems, i < j.

    The sum of flipped differences is the difference of two flipped sums, so each column is
    flipped once instead of once per pair. `sums` has the shape (clusters, systems, columns).
    """
    # As in the bootstrap: the stream is the same in all releases of numpy.
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
    """Return the difference that a two-sided test at 5 % finds with a chance of 80 %.

    It is (t[1 - ALPHA / 2] + t[POWER]) times the standard error of the difference, with quantiles
    of Student's t for one degree of freedom less than there are clusters (Bloom 1995,
    doi:10.1177/0193841X9501900504). The standard error is that of a mean over clusters (Miller
    2024, arXiv:2411.00640, with the usual factor for few clusters): for N samples in G clusters,
    D the sum of the paired differences in a cluster, n its samples and m the mean difference, it
    is sqrt(G / (G - 1) * sum (D - m n)^2) / N. For H, the differences are those of the
    contributions (`Scores.contributions`). Holm's correction is not included.

    Returns:
        The difference; 0 if the systems differ by the same in every sample. None if it is above 1,
        or if there are fewer than six clusters, for which p of a sign flip is never below 5 %.

    Raises:
        ValueError: the samples differ.
    """
    # Slow to import.
    from scipy.special import stdtrit

    sums, sizes = cluster_sums([first.minus(second)])
    differences, clusters = sums[:, 0], len(sizes)
    if 2 ** (1 - clusters) >= ALPHA:
        return None
    apart = differences - differences.sum() / sizes.sum() * sizes
    error = sqrt(clusters / (clusters - 1) * float(np.square(apart).sum())) / float(sizes.sum())
    quantiles = stdtrit(clusters - 1, [1 - ALPHA / 2, POWER])
    # As for the intervals: rounding hides the order of summation.
    detectable = round(float(quantiles.sum()) * error, 12)
    return detectable if detectable <= 1 else None


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison of two systems on the samples in common.

    Attributes:
        difference: first figure minus second.
        first_interval: None, like the other intervals, if all samples are in one cluster.
        p: two-sided p of the difference, not corrected.
        detectable: the smallest difference that the samples can be expected to show, if any.
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
        """Return the id and figures of at most `count` differing samples, most different first.

        Equally different samples are in the order of the dataset.
        """
        samples = zip(self.first.ids, self.first.values, self.second.values, strict=True)
        differing = [(sample_id, a, b) for sample_id, a, b in samples if a != b]
        differing.sort(key=lambda sample: -abs(sample[1] - sample[2]))
        return differing[:count]

    def tally(self) -> tuple[int, int, int]:
        """Count the samples on which the first is higher, the second is higher, both are equal."""
        pairs = list(zip(self.first.values, self.second.values, strict=True))
        higher = sum(a > b for a, b in pairs)
        lower = sum(a < b for a, b in pairs)
        return higher, lower, len(pairs) - higher - lower


def compare(first: Scores, second: Scores) -> Comparison | None:
    """Compare two systems on the samples in common; None if there are none.

    Raises:
        ValueError: the order or the clusters of the samples in common differ.
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
    """The rank of a system: one more than the number of systems that are significantly better.

    `detectable` is the smallest difference from the best other system that the samples can be
    expected to show, if any.
    """

    rank: int
    detectable: float | None


def ranked(scores: Sequence[Scores]) -> list[Standing]:
    """Rank systems on the same samples; all pairs are tested together.

    A system is significantly better than another if its figure is higher and p, after Holm's
    correction over all pairs, is below 0.05. "Not significantly different" is not transitive: if
    only the first of three systems differs from the last, the ranks are 1, 1, 2, although the
    second does not differ from the last. For the same reason a system may have a smaller rank than
    one with a higher figure. Whether two given systems differ, only their own test says.

    Raises:
        ValueError: the samples differ.
    """
    pairs = p_values(scores)
    figures = [one.figure for one in scores]
    better = [0] * len(scores)
    for (i, j), p in zip(pairs, holm(list(pairs.values())), strict=True):
        if p < ALPHA:
            better[i if figures[i] < figures[j] else j] += 1
    best = sorted(range(len(scores)), key=figures.__getitem__, reverse=True)[:2]
    standings = []
    for place, own in enumerate(scores):
        rival = next((other for other in best if other != place), None)
        detectable = None if rival is None else smallest_detectable(own, scores[rival])
        standings.append(Standing(1 + better[place], detectable))
    return standings
