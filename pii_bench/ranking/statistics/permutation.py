"""Whether two systems differ: paired permutation tests, corrected for their number.

If two systems were alike, the answers of one to the samples of a description could as well
be those of the other. So the answers of each cluster are exchanged at random, both figures are
computed anew, and p is the share of exchanges whose difference of figures is at least as large as
the one observed, up or down (Fisher 1935; Dror et al. 2018, doi:10.18653/v1/P18-1128, recommend
it). Of means, an exchange flips the sign of the cluster's difference.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from pii_bench.ranking.statistics.bootstrap import SEED
from pii_bench.ranking.statistics.scores import cluster_sums, figures_of, require_same_samples

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from pii_bench.ranking.statistics.scores import Scores

FLIPS: Final = 10_000
EXACT_UP_TO: Final = 13
"""Clusters that differ: as long as all their flips are fewer than `FLIPS`, each is taken."""

_CHUNK: Final = 1_000
# Sums of scores, each from 0 to 1: less is the rounding of a sum.
_ROUNDING: Final = 1e-9


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
