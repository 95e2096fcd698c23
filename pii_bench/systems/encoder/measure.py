"""How good a reader is on samples: the scorer's figures, for choosing epochs and thresholds."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

from pii_bench.scorer import score_detection
from pii_bench.systems import BALANCED
from pii_bench.systems.encoder.dial import fit_dial
from pii_bench.systems.encoder.reader import Reader
from pii_bench.systems.relevance.base import Scored, best_threshold, macro_f1

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from pii_bench.datasets.sample import Sample
    from pii_bench.systems.encoder.dial import DialPoint
    from pii_bench.systems.encoder.reader import Found


@dataclass(frozen=True, slots=True)
class Measured:
    """How good a reader is on dev.

    Attributes:
        figures: Strict-F1, Ent-F1, query F1 at the threshold where it is highest, and H of the
            masked text where the dial is balanced; `score`, their sum.
        dial: setting to what was fitted for it.
    """

    figures: Mapping[str, float]
    dial: Mapping[str, DialPoint]


def measure(folder: Path, samples: Sequence[Sample]) -> Measured:
    """Read every sample of dev and score it.

    Args:
        folder: of the weights.
        samples: of dev, all with queries.
    """
    reader = Reader(folder)
    found = [
        reader.weigh(sample.description, reader.detect(sample.description), sample.query or "")
        for sample in samples
    ]
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
    ]
    dial = fit_dial(samples, found)
    figures = {
        "strict": fmean(d.strict.f1 for d in detections),
        "entity": fmean(d.entity.f1 for d in detections),
        "query": macro_f1(scored, best_threshold(scored)),
        "h": dial[BALANCED].mean(0.5),
    }
    return Measured({**figures, "score": sum(figures.values())}, dial)


def subjects_of(found: Iterable[Found]) -> list[list[tuple[str, str]]]:
    """The entities by person; those of no named person are one's."""
    people: dict[str, list[tuple[str, str]]] = {}
    for item in found:
        for owner in item.owners or ("",):
            people.setdefault(owner, []).append((item.text, item.type))
    return list(people.values())
