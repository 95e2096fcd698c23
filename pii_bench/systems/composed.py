"""Systems made of a source of entities and a source of relevance, without a chat model.

Their responses are written in the answer formats of the prompts, so that stored runs of all
systems are read by one parser.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pii_bench.models.base import Completion, Finish
from pii_bench.systems.base import THIS_MACHINE, SystemCard
from pii_bench.tasks import Task

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pii_bench.datasets.sample import Sample
    from pii_bench.systems.parts import EntitySource, RelevanceSource

DETECTION_PROMPT: Final = "detection"
RELATED_PROMPT: Final = "system"


@dataclass(frozen=True, slots=True)
class Composition:
    """The parts of a system, named `DETECTOR` or `DETECTOR+RELEVANCE`.

    Attributes:
        entities: where entities come from.
        relevance: who tells the needed ones; None for detection alone.
    """

    entities: EntitySource
    relevance: RelevanceSource | None = None

    @property
    def name(self) -> str:
        """The names of the parts."""
        entities = self.entities.name
        return f"{entities}+{self.relevance.name}" if self.relevance else entities

    @property
    def settings(self) -> Mapping[str, str]:
        """The identities of the parts; one for both tasks, so that masking can join them."""
        related = self.relevance.identity if self.relevance else {}
        return {
            **{f"detector.{key}": value for key, value in self.entities.identity.items()},
            **{f"relevance.{key}": value for key, value in related.items()},
        }


@dataclass(frozen=True, slots=True)
class DetectionSystem:
    """Answers detection with all entities as those of one subject (`System`)."""

    parts: Composition

    @property
    def card(self) -> SystemCard:
        """An oracle where the entities are gold; it names no subjects."""
        return SystemCard(
            model=self.parts.name,
            prompt=DETECTION_PROMPT,
            prompt_sha256="",
            task=Task.DETECTION,
            oracle=self.parts.entities.oracle,
            settings=self.parts.settings,
            names_subjects=False,
            unmasked_text_to=THIS_MACHINE,
        )

    def request_hash(self, sample: Sample) -> str:
        """SHA-256 over the entities' source and what it reads of the sample."""
        return _hash([_identity(self.parts.entities, sample)])

    async def respond(self, sample: Sample) -> Completion:
        """`Subject1{"text": "TYPE", ...}`; a text of two types has the first."""
        types: dict[str, str] = {}
        for entity in self.parts.entities.entities(sample):
            types.setdefault(entity.text, entity.type)
        return await _answer(f"Subject1{json.dumps(types, ensure_ascii=False)}")

    async def close(self) -> None:
        """Nothing to release."""


@dataclass(frozen=True, slots=True)
class RelevanceSystem:
    """Answers query-related with the entities that are told to be needed (`System`).

    Attributes:
        relevance: that of the parts.
    """

    parts: Composition
    relevance: RelevanceSource

    @property
    def card(self) -> SystemCard:
        """An oracle where either part is gold."""
        return SystemCard(
            model=self.parts.name,
            prompt=RELATED_PROMPT,
            prompt_sha256="",
            task=Task.QUERY_RELATED,
            oracle=self.parts.entities.oracle or self.relevance.oracle,
            settings=self.parts.settings,
            unmasked_text_to=THIS_MACHINE,
        )

    def request_hash(self, sample: Sample) -> str:
        """SHA-256 over both parts and what they read of the sample."""
        parts = self.parts.entities, self.relevance
        return _hash([_identity(part, sample) for part in parts])

    async def respond(self, sample: Sample) -> Completion:
        """`### Answer: ["text", ...]`."""
        entities = self.parts.entities.entities(sample)
        texts = self.relevance.needed(sample, entities)
        return await _answer(f"### Answer: {json.dumps(texts, ensure_ascii=False)}")

    async def close(self) -> None:
        """Nothing to release."""


def compose_systems(
    entities: EntitySource, relevance: RelevanceSource | None = None
) -> tuple[DetectionSystem | RelevanceSystem, ...]:
    """The systems of one composition: detection, and query-related where relevance is given."""
    parts = Composition(entities, relevance)
    if relevance is None:
        return (DetectionSystem(parts),)
    return DetectionSystem(parts), RelevanceSystem(parts, relevance)


async def _answer(text: str) -> Completion:
    # The work is done on the processor, and the libraries below are not all safe in threads.
    # Only here can the event loop stop a run.
    await asyncio.sleep(0)
    return Completion(text, Finish.STOP)


def _identity(part: EntitySource | RelevanceSource, sample: Sample) -> dict[str, Any]:
    return {"name": part.name, "identity": dict(part.identity), "reads": dict(part.reads(sample))}


def _hash(identity: object) -> str:
    canonical = json.dumps(identity, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(canonical.encode()).hexdigest()
