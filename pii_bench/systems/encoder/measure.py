"""Scores of an encoder on dev, and the thresholds of the `--keep` settings, fitted there."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Final

import numpy as np

from pii_bench.scorer import score_detection
from pii_bench.scorer.masked_text import GoldTexts, score_judgement
from pii_bench.systems import BALANCED, KEEP
from pii_bench.systems.encoder.reader import Reader, is_kept, subjects_of
from pii_bench.systems.relevance.base import ScoredSample, best_threshold, macro_f1

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pii_bench.datasets.sample import Sample
    from pii_bench.scorer.masked_text import MaskedTextScore
    from pii_bench.systems.encoder.reader import FoundEntity

WEIGHTS: Final[Mapping[str, float]] = dict(zip(KEEP, (0.9, 0.7, 0.5, 0.3, 0.1), strict=True))
"""`--keep` setting to the weight of protection in the mean; retention has the rest."""

_ALIKE: Final = 0.002
"""Means that differ by at most this count as equal: another dev set would change them by more."""


@dataclass(frozen=True, slots=True)
class KeepThreshold:
    """A threshold with its mean protection and mean retention on dev (docs/results.md)."""

    threshold: float
    protection: float
    retention: float

    def mean(self, weight: float) -> float:
        """Return the harmonic mean of both, with this weight for protection."""
        if not self.protection or not self.retention:
            return 0.0
        return 1 / (weight / self.protection + (1 - weight) / self.retention)


@dataclass(frozen=True, slots=True)
class Measured:
    """The scores of an encoder on dev, and the thresholds by `--keep` setting.

    The figures are Strict-F1, Ent-F1, query F1 at its best threshold, H of the masked text at the
    balanced setting, and `score`, their sum.
    """

    figures: Mapping[str, float]
    thresholds: Mapping[str, KeepThreshold]


def measure(folder: Path, samples: Sequence[Sample]) -> Measured:
    """Run the encoder of a folder on dev samples, all with queries; fit the thresholds."""
    reader = Reader(folder)
    found = [
        reader.score_relevance(
            sample.description, reader.detect(sample.description), sample.query or ""
        )
        for sample in samples
    ]
    detections = [
        score_detection(subjects_of(own), sample.gold_subjects)
        for own, sample in zip(found, samples, strict=True)
    ]
    scored = [
        ScoredSample(
            tuple(item.text for item in own),
            tuple(item.relevance for item in own),
            frozenset(need.text for need in sample.related),
        )
        for own, sample in zip(found, samples, strict=True)
    ]
    thresholds = fit_thresholds(samples, found)
    figures = {
        "strict": fmean(d.strict.f1 for d in detections),
        "entity": fmean(d.entity.f1 for d in detections),
        "query": macro_f1(scored, best_threshold(scored)),
        "h": thresholds[BALANCED].mean(0.5),
    }
    return Measured({**figures, "score": sum(figures.values())}, thresholds)


def fit_thresholds(
    samples: Sequence[Sample], found: Sequence[Sequence[FoundEntity]]
) -> dict[str, KeepThreshold]:
    """Fit the threshold of each `--keep` setting on dev.

    It is the highest threshold, which protects most, whose weighted harmonic mean of protection
    and retention is within `_ALIKE` of the best.
    """
    scores = [item.relevance for own in found for item in own]
    levels = np.unique(np.quantile(scores, np.linspace(0, 1, 80)))
    golds = [_gold(sample) for sample in samples]
    points = [_point(float(level), golds, found) for level in levels]
    return {setting: _most_protective(points, weight) for setting, weight in WEIGHTS.items()}


def _most_protective(points: Sequence[KeepThreshold], weight: float) -> KeepThreshold:
    best = max(point.mean(weight) for point in points)
    good = [point for point in points if point.mean(weight) >= best - _ALIKE]
    return max(good, key=lambda point: point.threshold)


def _gold(sample: Sample) -> GoldTexts:
    entities = [(entity.text, entity.spans) for entity in sample.entities]
    return GoldTexts(sample.description, entities, [need.text for need in sample.related])


def _point(
    threshold: float, golds: Sequence[GoldTexts], found: Sequence[Sequence[FoundEntity]]
) -> KeepThreshold:
    scores: list[MaskedTextScore] = []
    for gold, own in zip(golds, found, strict=True):
        masked = [span for item in own if not is_kept(item, threshold) for span in item.spans]
        scores.append(score_judgement(gold, gold.judge(masked)))
    return KeepThreshold(
        threshold, fmean(s.protection for s in scores), fmean(s.retention for s in scores)
    )
