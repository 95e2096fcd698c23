"""Systems without a chat model: a source of entities and a choice among them.

Either part can copy the gold annotation. The system is then an oracle, whose remaining errors are
those of the other part.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from operator import index
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from pii_bench.errors import PiiBenchError, UnknownNameError
from pii_bench.files import sha256_of_value
from pii_bench.scorer import normalise
from pii_bench.systems.base import GOLD, THIS_MACHINE, UNKNOWN_RECIPIENT, FaultError, SystemCard
from pii_bench.systems.detectors import build_detector, check_detector
from pii_bench.systems.predictions import Prediction
from pii_bench.systems.relevance.base import Candidate, choose, gold_candidates
from pii_bench.systems.relevance.catalog import RELEVANCE, build_relevance
from pii_bench.tasks import Status, Task

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from pii_bench.datasets.sample import Sample
    from pii_bench.scorer.locate import DetectedSpan
    from pii_bench.systems.base import System
    from pii_bench.systems.detectors import Detector
    from pii_bench.systems.relevance.base import Relevance


class DetectedEntities:
    """The entities that a detector finds.

    Results are cached, because detection and query-related read the same descriptions.
    """

    oracle = False

    def __init__(self, detector: Detector, unmasked_text_to: str = UNKNOWN_RECIPIENT) -> None:
        self.unmasked_text_to = unmasked_text_to
        self.name = detector.name
        self.identity = detector.identity
        # A copy: a generator would be empty on the second use, and a list could change.
        self._detect = lru_cache(4096)(lambda text: tuple(_spans(detector, text)))

    def inputs(self, sample: Sample) -> Mapping[str, Any]:
        """Return the parts of a sample that the answer depends on."""
        return {"description": sample.description}

    def entities(self, sample: Sample) -> list[Candidate]:
        """Return the detected texts, one per text and type, at their first positions."""
        first: dict[tuple[str, str], int] = {}
        for span in self._detect(sample.description):
            first.setdefault((sample.description[span.start : span.end], span.type), span.start)
        return [Candidate(text, pii_type, start) for (text, pii_type), start in first.items()]


def _spans(detector: Detector, text: str) -> Iterator[DetectedSpan]:
    """Yield the spans of a detector, whose code may be foreign."""
    found: object = detector.detect(text)
    if not isinstance(found, Iterable):
        raise FaultError(f"returned {type(found).__name__} from detect, not spans")
    for span in found:
        try:
            start, end, pii_type = index(span.start), index(span.end), span.type
        except AttributeError:
            what = f"returned {type(span).__name__} from detect, not DetectedSpan"
            raise FaultError(what) from None
        except TypeError:
            raise FaultError("returned a span from detect whose offsets are no integers") from None
        if not isinstance(pii_type, str):
            raise FaultError("returned a span from detect whose type is no string")
        if not 0 <= start < end <= len(text):
            where = f"{start}:{end} in a text of {len(text)} characters"
            raise FaultError(f"returned a wrong span from detect: {where}")
        yield span


class _Gold:
    name = GOLD
    oracle = True
    unmasked_text_to = THIS_MACHINE
    identity: ClassVar[Mapping[str, str]] = {}


class GoldEntities(_Gold):
    """The gold entities."""

    def inputs(self, sample: Sample) -> Mapping[str, Any]:
        """Return the description and its gold entities."""
        entities = [[e.text, e.type, e.start] for e in gold_candidates(sample)]
        return {"description": sample.description, "entities": entities}

    def entities(self, sample: Sample) -> list[Candidate]:
        """Return all gold entities."""
        return gold_candidates(sample)


class PredictedRelevance:
    """The entities that a relevance system chooses."""

    oracle = False

    def __init__(self, relevance: Relevance, unmasked_text_to: str = UNKNOWN_RECIPIENT) -> None:
        self.relevance = relevance
        self.unmasked_text_to = unmasked_text_to
        self.name = relevance.name
        self.identity = relevance.identity

    def inputs(self, sample: Sample) -> Mapping[str, Any]:
        """Return the parts of a sample that the answer depends on."""
        return {"description": sample.description, "query": sample.query}

    def needed(self, sample: Sample, entities: Sequence[Candidate]) -> list[str]:
        """Return the texts of the entities that reach the threshold."""
        return choose(self.relevance, sample.query or "", sample.description, entities)


class GoldRelevance(_Gold):
    """The entities whose texts match a gold related entity; it adds none that were missed."""

    def inputs(self, sample: Sample) -> Mapping[str, Any]:
        """Return the gold related texts."""
        return {"related": [entity.text for entity in sample.related]}

    def needed(self, sample: Sample, entities: Sequence[Candidate]) -> list[str]:
        """Return the texts that equal a related entity's text after normalisation."""
        related = {normalise(entity.text) for entity in sample.related}
        matching = (entity.text for entity in entities if normalise(entity.text) in related)
        return [*dict.fromkeys(matching)]


EntitySource: TypeAlias = DetectedEntities | GoldEntities
RelevanceSource: TypeAlias = PredictedRelevance | GoldRelevance


@dataclass(frozen=True, slots=True)
class DetectionSystem:
    """A system that answers detection with all entities in one subject."""

    entities: EntitySource

    @property
    def card(self) -> SystemCard:
        """The card, named after the source of entities."""
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
        """Return the SHA-256 of the source's identity and inputs."""
        return sha256_of_value([_identity(self.entities, sample)])

    async def respond(self, sample: Sample) -> Prediction:
        """Return the texts with their types; a text with two types gets the first."""
        types: dict[str, str] = {}
        for entity in self.entities.entities(sample):
            types.setdefault(entity.text, entity.type)
        # The work is synchronous, since the libraries are not all thread-safe. Without this, a run
        # could not be stopped.
        await asyncio.sleep(0)
        return Prediction(Status.OK, subjects=(tuple(types.items()),))

    async def close(self) -> None:
        """Do nothing: there are no resources to release."""


@dataclass(frozen=True, slots=True)
class RelevanceSystem:
    """A system that answers query-related with a choice among entities.

    The detection answers of one detector serve all relevance systems, as those of one model serve
    all strategies.
    """

    entities: EntitySource
    relevance: RelevanceSource

    @property
    def card(self) -> SystemCard:
        """The card, with the relevance part as its prompt."""
        identity = self.relevance.identity
        return SystemCard(
            model=self.entities.name,
            prompt=self.relevance.name,
            prompt_sha256=sha256_of_value(dict(identity)) if identity else "",
            task=Task.QUERY_RELATED,
            oracle=self.entities.oracle or self.relevance.oracle,
            settings=self.entities.identity,
            unmasked_text_to=self._recipients,
        )

    def request_hash(self, sample: Sample) -> str:
        """Return the SHA-256 of both parts' identities and inputs."""
        return sha256_of_value(
            [_identity(self.entities, sample), _identity(self.relevance, sample)]
        )

    async def respond(self, sample: Sample) -> Prediction:
        """Return the needed texts."""
        texts = self.relevance.needed(sample, self.entities.entities(sample))
        # As in `DetectionSystem`.
        await asyncio.sleep(0)
        return Prediction(Status.OK, related=tuple(texts))

    async def close(self) -> None:
        """Do nothing: there are no resources to release."""

    @property
    def _recipients(self) -> str:
        recipients = {self.entities.unmasked_text_to, self.relevance.unmasked_text_to}
        if UNKNOWN_RECIPIENT in recipients:
            return UNKNOWN_RECIPIENT
        return ", ".join(sorted(recipients - {THIS_MACHINE})) or THIS_MACHINE


def compose_systems(
    entities: EntitySource, relevance: RelevanceSource | None = None
) -> tuple[DetectionSystem | RelevanceSystem, ...]:
    """Return a detection system, and a query-related one if relevance is given."""
    if relevance is None:
        return (DetectionSystem(entities),)
    return DetectionSystem(entities), RelevanceSystem(entities, relevance)


def _identity(part: EntitySource | RelevanceSource, sample: Sample) -> dict[str, Any]:
    return {"name": part.name, "identity": dict(part.identity), "reads": dict(part.inputs(sample))}


def build_composed(name: str, label_map: Path | None) -> tuple[System, ...]:
    """Build the systems of `DETECTOR` or `DETECTOR+RELEVANCE`; either part can be `GOLD`.

    Raises:
        UnknownNameError: a part is unknown.
        MissingExtraError: a dependency of a part is not installed.
        InputFileError: a file of a part is missing or broken.
        PiiBenchError: a label map is given to a part that takes none.
    """
    check_composed(name)
    detector, relevance_name = _split(name)
    relevance: RelevanceSource | None = None
    if relevance_name == GOLD:
        relevance = GoldRelevance()
    elif relevance_name is not None:
        relevance = PredictedRelevance(build_relevance(relevance_name), THIS_MACHINE)
    if detector != GOLD:
        entities = DetectedEntities(build_detector(detector, label_map), THIS_MACHINE)
        return compose_systems(entities, relevance)
    if label_map is not None:
        raise PiiBenchError(f"{GOLD!r} has our types: --label-map does not apply to it")
    return compose_systems(GoldEntities(), relevance)


def check_composed(name: str) -> None:
    """Check the names of both parts without loading them.

    Raises:
        UnknownNameError: a part is unknown.
    """
    detector, relevance = _split(name)
    if relevance is not None and relevance not in {*RELEVANCE, GOLD}:
        raise UnknownNameError("relevance system", relevance, [*RELEVANCE, GOLD])
    if detector != GOLD:
        check_detector(detector)


def _split(name: str) -> tuple[str, str | None]:
    # At the last plus: a checkpoint's path may contain others.
    detector, plus, relevance = name.rpartition("+")
    return (detector, relevance) if plus else (name, None)
