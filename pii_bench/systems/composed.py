"""Systems made of a source of entities and a source of relevance, without a chat model."""

from __future__ import annotations

import asyncio
import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pii_bench.errors import PiiBenchError, UnknownNameError
from pii_bench.systems.base import GOLD, THIS_MACHINE, UNKNOWN_RECIPIENT, SystemCard
from pii_bench.systems.detectors import build_detector, check_detector
from pii_bench.systems.parts import (
    DetectedEntities,
    GoldEntities,
    GoldRelevance,
    PredictedRelevance,
)
from pii_bench.systems.predictions import Prediction
from pii_bench.systems.relevance.catalog import RELEVANCE, build_relevance
from pii_bench.tasks import Status, Task

if TYPE_CHECKING:
    from pathlib import Path

    from pii_bench.datasets.sample import Sample
    from pii_bench.systems.base import System
    from pii_bench.systems.parts import EntitySource, RelevanceSource


@dataclass(frozen=True, slots=True)
class DetectionSystem:
    """Answers detection with all entities as those of one subject (`System`)."""

    entities: EntitySource

    @property
    def card(self) -> SystemCard:
        """An oracle where the entities are gold; it names no subjects."""
        return SystemCard(
            model=self.entities.name,
            prompt="detection",
            prompt_sha256="",
            task=Task.DETECTION,
            oracle=self.entities.oracle,
            settings=self.entities.identity,
            names_subjects=False,
            unmasked_text_to=self.entities.unmasked_text_to,
        )

    def request_hash(self, sample: Sample) -> str:
        """SHA-256 over the entities' source and what it reads of the sample."""
        return _hash([_identity(self.entities, sample)])

    async def respond(self, sample: Sample) -> Prediction:
        """Texts with their types; a text of two types has the first."""
        types: dict[str, str] = {}
        for entity in self.entities.entities(sample):
            types.setdefault(entity.text, entity.type)
        await _let_others_stop()
        return Prediction(Status.OK, subjects=(tuple(types.items()),))

    async def close(self) -> None:
        """Nothing to release."""


@dataclass(frozen=True, slots=True)
class RelevanceSystem:
    """Answers query-related with the entities that are told to be needed (`System`).

    It is to its source of entities what a strategy is to a model: the detection answers of
    one detector serve all that choose among them.
    """

    entities: EntitySource
    relevance: RelevanceSource

    @property
    def card(self) -> SystemCard:
        """An oracle where either part is gold; the relevance is named as its prompt."""
        identity = self.relevance.identity
        return SystemCard(
            model=self.entities.name,
            prompt=self.relevance.name,
            prompt_sha256=_hash(dict(identity)) if identity else "",
            task=Task.QUERY_RELATED,
            oracle=self.entities.oracle or self.relevance.oracle,
            settings=self.entities.identity,
            unmasked_text_to=_recipients(self.entities, self.relevance),
        )

    def request_hash(self, sample: Sample) -> str:
        """SHA-256 over both parts and what they read of the sample."""
        parts = self.entities, self.relevance
        return _hash([_identity(part, sample) for part in parts])

    async def respond(self, sample: Sample) -> Prediction:
        """The texts that are needed."""
        entities = self.entities.entities(sample)
        texts = self.relevance.needed(sample, entities)
        await _let_others_stop()
        return Prediction(Status.OK, related=tuple(texts))

    async def close(self) -> None:
        """Nothing to release."""


def compose_systems(
    entities: EntitySource, relevance: RelevanceSource | None = None
) -> tuple[DetectionSystem | RelevanceSystem, ...]:
    """The systems of one composition: detection, and query-related where relevance is given."""
    if relevance is None:
        return (DetectionSystem(entities),)
    return DetectionSystem(entities), RelevanceSystem(entities, relevance)


async def _let_others_stop() -> None:
    # The work is done on the processor, and the libraries below are not all safe in threads.
    # Only here can the event loop stop a run.
    await asyncio.sleep(0)


def _recipients(*parts: EntitySource | RelevanceSource) -> str:
    """All of them; unknown where one is unknown."""
    all_of_them = {part.unmasked_text_to for part in parts}
    if UNKNOWN_RECIPIENT in all_of_them:
        return UNKNOWN_RECIPIENT
    return ", ".join(sorted(all_of_them - {THIS_MACHINE})) or THIS_MACHINE


def _identity(part: EntitySource | RelevanceSource, sample: Sample) -> dict[str, Any]:
    return {"name": part.name, "identity": dict(part.identity), "reads": dict(part.reads(sample))}


def _hash(identity: object) -> str:
    canonical = json.dumps(identity, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(canonical.encode()).hexdigest()


def build_composed(name: str, label_map: Path | None) -> tuple[System, ...]:
    """Make the systems of `DETECTOR` or `DETECTOR+RELEVANCE`; either part can be `GOLD`.

    Raises:
        UnknownNameError: there is no such part.
        MissingExtraError: what a part needs is not installed.
        InputFileError: a file that a part reads is missing or broken.
        PiiBenchError: a part takes no map of labels.
    """
    check_composed(name)
    detector, relevance = _parts(name)
    chooser: RelevanceSource | None = None
    if relevance is not None:
        chooser = (
            GoldRelevance()
            if relevance == GOLD
            else PredictedRelevance(build_relevance(relevance), THIS_MACHINE)
        )
    if detector != GOLD:
        found = DetectedEntities(build_detector(detector, label_map), THIS_MACHINE)
        return compose_systems(found, chooser)
    if label_map is not None:
        raise PiiBenchError(f"{GOLD!r} has our types: --label-map does not apply to it")
    return compose_systems(GoldEntities(), chooser)


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
