"""How much stays readable: thresholds of relevance, from keeping least to keeping most."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Final

import numpy as np

from pii_bench.scorer.masked_text import GoldTexts, score_judgement
from pii_bench.systems import KEEP
from pii_bench.taxonomy import PiiType

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pii_bench.datasets.sample import Sample
    from pii_bench.scorer.masked_text import MaskedTextScore
    from pii_bench.systems.encoder.reader import Found

WEIGHTS: Final[Mapping[str, float]] = dict(zip(KEEP, (0.9, 0.7, 0.5, 0.3, 0.1), strict=True))
"""Setting to the weight of protection, next to that of retention, in the mean."""

_LEVELS: Final = 80
_ALIKE: Final = 0.005
"""Means that differ by less are alike: those of another dev set would differ by more."""

_CLEAR: Final = 0.8


@dataclass(frozen=True, slots=True)
class DialPoint:
    """What a threshold comes to on dev: mean protection and mean retention (scorer.md)."""

    threshold: float
    protection: float
    retention: float

    def mean(self, weight: float) -> float:
        """The harmonic mean of the two, protection with this weight."""
        if not self.protection or not self.retention:
            return 0.0
        return 1 / (weight / self.protection + (1 - weight) / self.retention)


def fit_dial(samples: Sequence[Sample], found: Sequence[Sequence[Found]]) -> dict[str, DialPoint]:
    """For each setting the highest threshold, so the one that protects most, among the best on dev.

    The best are those whose weighted harmonic mean of protection and retention is the greatest or
    within `_ALIKE` of it.

    Args:
        samples: of dev, with queries and with spans.
        found: what the reader finds in each, with its relevance.
    """
    scores = [item.relevance for own in found for item in own]
    levels = np.unique(np.quantile(scores, np.linspace(0, 1, _LEVELS)))
    golds = [_gold(sample) for sample in samples]
    points = [_point(float(level), golds, found) for level in levels]
    return {setting: _most_protective(points, weight) for setting, weight in WEIGHTS.items()}


def _most_protective(points: Sequence[DialPoint], weight: float) -> DialPoint:
    best = max(point.mean(weight) for point in points)
    return max(
        (point for point in points if point.mean(weight) >= best - _ALIKE),
        key=lambda point: point.threshold,
    )


def is_kept(item: Found, threshold: float) -> bool:
    """Whether something found is to stay readable.

    Names never are; account, identity and contact numbers only where the query clearly needs
    them, and the threshold allows it.
    """
    if item.type is PiiType.PER:
        return False
    least = max(threshold, _CLEAR) if item.type is PiiType.CODE else threshold
    return item.relevance > 0 and item.relevance >= least


def _gold(sample: Sample) -> GoldTexts:
    entities = [(entity.text, entity.spans) for entity in sample.entities]
    return GoldTexts(sample.description, entities, [need.text for need in sample.related])


def _point(
    threshold: float, golds: Sequence[GoldTexts], found: Sequence[Sequence[Found]]
) -> DialPoint:
    scores: list[MaskedTextScore] = []
    for gold, own in zip(golds, found, strict=True):
        masked = [span for item in own if not is_kept(item, threshold) for span in item.spans]
        scores.append(score_judgement(gold, gold.judge(masked)))
    return DialPoint(
        threshold, fmean(s.protection for s in scores), fmean(s.retention for s in scores)
    )
