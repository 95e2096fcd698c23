"""Composed systems by the names of their parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pii_bench.errors import PiiBenchError, UnknownNameError
from pii_bench.systems.base import GOLD, THIS_MACHINE
from pii_bench.systems.composed import compose_systems
from pii_bench.systems.detectors.catalog import build_detector
from pii_bench.systems.parts import (
    DetectedEntities,
    GoldEntities,
    GoldRelevance,
    PredictedRelevance,
)
from pii_bench.systems.relevance.catalog import RELEVANCE, build_relevance

if TYPE_CHECKING:
    from pathlib import Path

    from pii_bench.systems.base import System
    from pii_bench.systems.parts import EntitySource, RelevanceSource


def build_composed(name: str, label_map: Path | None) -> tuple[System, ...]:
    """Make the systems of `DETECTOR` or `DETECTOR+RELEVANCE`; either part can be `GOLD`.

    Args:
        name: of the parts.
        label_map: a detector's map of labels, instead of its own.

    Raises:
        UnknownNameError: there is no such part.
        MissingExtraError: what a part needs is not installed.
        InputFileError: a file that a part reads is missing or broken.
        PiiBenchError: a part takes no map of labels.
    """
    # The last: a checkpoint's path may hold others.
    detector, plus, relevance = name.rpartition("+")
    chooser = _relevance(relevance) if plus else None
    return compose_systems(_entities(detector if plus else name, label_map), chooser)


def _entities(name: str, label_map: Path | None) -> EntitySource:
    if name != GOLD:
        return DetectedEntities(build_detector(name, label_map), THIS_MACHINE)
    if label_map is not None:
        raise PiiBenchError(f"{GOLD!r} has our types: --label-map does not apply to it")
    return GoldEntities()


def _relevance(name: str) -> RelevanceSource:
    if name == GOLD:
        return GoldRelevance()
    if name not in RELEVANCE:
        raise UnknownNameError("relevance system", name, [*RELEVANCE, GOLD])
    return PredictedRelevance(build_relevance(name), unmasked_text_to=THIS_MACHINE)
