"""Ranks that say no more than the samples do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pii_bench.ranking.statistics.detectable import smallest_detectable
from pii_bench.ranking.statistics.permutation import holm, p_values

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pii_bench.ranking.statistics.scores import Scores

SIGNIFICANT: Final = 0.05
"""A difference is shown where p, after Holm's correction, is below this."""


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
