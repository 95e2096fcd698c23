"""Whether two systems differ: paired permutation tests, corrected for their number.

If two systems were alike, the answers of one to the samples of a description could as well
be those of the other. So the sign of each cluster's difference is flipped at random, and p is
the share of flips whose difference of means is at least as large as the one observed, up or
down (Fisher 1935; Dror et al. 2018, doi:10.18653/v1/P18-1128, recommend it).
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Final

import numpy as np

from pii_bench.statistics.bootstrap import SEED
from pii_bench.statistics.scores import cluster_sums, require_same_samples

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from pii_bench.statistics.scores import Scores

FLIPS: Final = 10_000
EXACT_UP_TO: Final = 13
"""Clusters that differ: as long as all their flips are fewer than `FLIPS`, each is taken."""

_CHUNK: Final = 1_000
# Sums of scores, each from 0 to 1: less is the rounding of a sum.
_ROUNDING: Final = 1e-9


def p_values(scores: Sequence[Scores]) -> dict[tuple[int, int], float]:
    """Two-sided p of the difference of means, of each pair of systems.

    Exact where at most `EXACT_UP_TO` clusters differ. Else of `FLIPS` random flips, the same
    for all pairs; the flip observed counts as one more, so that p is never 0 (Phipson and
    Smyth 2010, doi:10.2202/1544-6115.1585). If no random flip reaches the difference, p is at
    most 1 / (FLIPS + 1), and at most Hoeffding's bound on the exact p,
    2 exp(-T^2 / (2 sum D^2)), with D the clusters' differences and T their sum (1963,
    doi:10.1080/01621459.1963.10500830). Without the bound, no pair of 33 systems or more
    could ever pass Holm's correction.

    Args:
        scores: of each system, all of the same samples.

    Returns:
        (i, j) with i < j to p.

    Raises:
        ValueError: the samples differ.
    """
    require_same_samples(scores)
    if not scores:
        return {}
    sums, _ = cluster_sums(scores)
    found: dict[tuple[int, int], float] = {}
    many: dict[tuple[int, int], NDArray[np.float64]] = {}
    for pair in combinations(range(len(scores)), 2):
        differences = sums[:, pair[0]] - sums[:, pair[1]]
        differences = differences[np.abs(differences) > _ROUNDING]
        if len(differences) <= EXACT_UP_TO:
            found[pair] = _exact(differences)
        else:
            many[pair] = differences
    if many:
        reached = _reached(sums)
        found |= {pair: _of_random_flips(int(reached[pair]), d) for pair, d in many.items()}
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


def _exact(differences: NDArray[np.float64]) -> float:
    if not len(differences):
        return 1.0
    # A flip of all is as far from 0, so the first may keep its sign.
    others = len(differences) - 1
    bits = np.arange(2**others)[:, np.newaxis] >> np.arange(others) & 1
    totals = differences[0] + (1.0 - 2.0 * bits) @ differences[1:]
    return float(np.mean(np.abs(totals) >= abs(differences.sum()) - _ROUNDING))


def _of_random_flips(reached: int, differences: NDArray[np.float64]) -> float:
    p = (reached + 1) / (FLIPS + 1)
    if reached:
        return p
    bound = 2 * np.exp(-(differences.sum() ** 2) / (2 * (differences**2).sum()))
    return min(p, float(bound))


def _reached(sums: NDArray[np.float64]) -> NDArray[np.int64]:
    """How many random flips reach the difference of each pair of columns.

    The total of a flipped difference is the difference of two flipped totals, so that each
    column is flipped once, not once per pair.

    Returns:
        Counts at [i, j] with i < j; the rest is 0.
    """
    # As in the bootstrap, a stream that no release of numpy changes.
    random = np.random.RandomState(SEED)
    clusters, columns = sums.shape
    observed = sums.sum(axis=0)
    reached = np.zeros((columns, columns), dtype=np.int64)
    for _ in range(FLIPS // _CHUNK):
        signs = random.randint(2, size=(_CHUNK, clusters), dtype=np.int8) * 2.0 - 1.0
        totals = sums.T @ signs.T
        for i in range(columns - 1):
            distance = np.abs(totals[i + 1 :] - totals[i])
            limit = np.abs(observed[i + 1 :] - observed[i]) - _ROUNDING
            reached[i, i + 1 :] += (distance >= limit[:, np.newaxis]).sum(axis=1)
    return reached
