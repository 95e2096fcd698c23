"""How good a reader is on samples: the scorer's figures, for choosing epochs and thresholds."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING

from pii_bench.scorer import score_detection
from pii_bench.systems.encoder.reader import Reader
from pii_bench.systems.relevance.thresholds import Scored, best_threshold, macro_f1

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from pii_bench.datasets.sample import Sample
    from pii_bench.systems.encoder.reader import Found


def measure(folder: Path, samples: Sequence[Sample]) -> dict[str, float]:
    """Strict-F1, Ent-F1 and query F1 at the best threshold of these samples; `score`, their sum.

    Args:
        folder: of the weights.
        samples: of dev.
    """
    reader = Reader(folder)
    found = [reader.read(sample.description, sample.query or "") for sample in samples]
    detections = [
        score_detection(
            subjects_of(own), [[(e.text, e.type) for e in s.entities] for s in sample.subjects]
        )
        for own, sample in zip(found, samples, strict=True)
    ]
    scored = [
        Scored(
            tuple(item.text for item in own),
            tuple(item.relevance for item in own),
            frozenset(need.text for need in sample.related),
        )
        for own, sample in zip(found, samples, strict=True)
        if sample.query
    ]
    threshold = best_threshold(scored)
    figures = {
        "strict": fmean(d.strict.f1 for d in detections),
        "entity": fmean(d.entity.f1 for d in detections),
        "query": macro_f1(scored, threshold),
    }
    return {**figures, "threshold": threshold, "score": sum(figures.values())}


def subjects_of(found: Iterable[Found]) -> list[list[tuple[str, str]]]:
    """The entities by person; those of no named person are one's."""
    people: dict[str, list[tuple[str, str]]] = {}
    for item in found:
        for owner in item.owners or ("",):
            people.setdefault(owner, []).append((item.text, item.type))
    return list(people.values())
