"""From samples to a dataset (spec, "Over a dataset")."""

from __future__ import annotations

from math import fsum
from typing import TYPE_CHECKING

from pii_bench.scorer.counts import PRF, Counts

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def macro(scores: Sequence[PRF]) -> PRF | None:
    """The mean over samples, the headline figure.

    Args:
        scores: one per gold sample; a sample without a prediction counts with 0.

    Returns:
        The three means, or None for no samples: a mean of nothing is not 0.
    """
    if not scores:
        return None
    return PRF(
        precision=fsum(score.precision for score in scores) / len(scores),
        recall=fsum(score.recall for score in scores) / len(scores),
        f1=fsum(score.f1 for score in scores) / len(scores),
    )


def micro(counts: Iterable[Counts]) -> PRF | None:
    """Counts summed over samples and divided once.

    Returns:
        The figures of the sum, or None where nothing was predicted and nothing was
        gold: counts do not tell an agreed empty set from a failure on one.
    """
    total = sum(counts, start=Counts())
    return None if total.empty else total.prf
