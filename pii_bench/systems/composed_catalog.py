"""Composed systems by the names of their parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pii_bench.errors import PiiBenchError, UnknownNameError
from pii_bench.systems.base import GOLD, THIS_MACHINE
from pii_bench.systems.composed import compose_systems
from pii_bench.systems.detectors.catalog import build_detector, check_detector
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
    check_composed(name)
    detector, relevance = _parts(name)
    chooser = _relevance(relevance) if relevance is not None else None
    return compose_systems(_entities(detector, label_map), chooser)


def check_composed(name: str) -> None:
    """Refuse a name of which a part is unknown, before anything is loaded for it.

    Raises:
        UnknownNameError: there is no such part.
    """
    detector, relevance = _parts(name)
    if relevance is not None and relevance not in {*RELEVANCE, GOLD}:
        raise UnknownNameError("relevance system", relevance, [*RELEVANCE, GOLD])
    if detector != GOLD:
        check_detector(detector)


def _parts(name: str) -> tuple[str, str | None]:
    # The last: a checkpoint's path may hold others.
    detector, plus, relevance = name.rpartition("+")
    return (detector, relevance) if plus else (name, None)


def _entities(name: str, label_map: Path | None) -> EntitySource:
    if name != GOLD:
        return DetectedEntities(build_detector(name, label_map), THIS_MACHINE)
    if label_map is not None:
        raise PiiBenchError(f"{GOLD!r} has our types: --label-map does not apply to it")
    return GoldEntities()


def _relevance(name: str) -> RelevanceSource:
    if name == GOLD:
        return GoldRelevance()
    return PredictedRelevance(build_relevance(name), unmasked_text_to=THIS_MACHINE)
