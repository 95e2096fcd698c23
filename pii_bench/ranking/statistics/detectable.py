"""How large a difference must be for samples like these to show it."""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING, Final

import numpy as np

from pii_bench.ranking.statistics.scores import cluster_sums

if TYPE_CHECKING:
    from pii_bench.ranking.statistics.scores import Scores

ALPHA: Final = 0.05
POWER: Final = 0.8


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
