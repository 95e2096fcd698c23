"""Two systems, side by side on the samples that both answered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pii_bench.ranking.statistics.bootstrap import Interval, difference_interval, intervals
from pii_bench.ranking.statistics.detectable import smallest_detectable
from pii_bench.ranking.statistics.permutation import p_values

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pii_bench.ranking.statistics.scores import Scores


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
