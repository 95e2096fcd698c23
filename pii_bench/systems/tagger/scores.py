"""How well spans are found: exact boundaries and type, counted over all texts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pii_bench.scorer.locate import DetectedSpan


@dataclass(frozen=True, slots=True)
class SpanScore:
    """Micro-averaged; 0 where nothing can be divided by."""

    precision: float
    recall: float
    f1: float


def span_score(
    pairs: Iterable[tuple[Sequence[DetectedSpan], Sequence[DetectedSpan]]],
) -> SpanScore:
    """Score predicted against gold spans: P = correct / predicted, R = correct / gold.

    Args:
        pairs: predicted and gold spans of each text.
    """
    correct = predicted = gold = 0
    for found, annotated in pairs:
        correct += len(set(found) & set(annotated))
        predicted += len(found)
        gold += len(annotated)
    return SpanScore(
        correct / predicted if predicted else 0.0,
        correct / gold if gold else 0.0,
        2 * correct / (predicted + gold) if predicted + gold else 0.0,
    )
