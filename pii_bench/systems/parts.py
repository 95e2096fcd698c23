"""What composed systems are made of: a source of entities, and a choice of the needed ones.

Either part can be gold. Then the system is an oracle: what is left of its error is the
other part's.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Protocol

from pii_bench.scorer import normalise
from pii_bench.systems.base import GOLD, THIS_MACHINE, UNKNOWN_RECIPIENT
from pii_bench.systems.relevance.base import Candidate, choose, gold_candidates

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pii_bench.datasets.sample import Sample
    from pii_bench.systems.detectors import Detector
    from pii_bench.systems.relevance.base import Relevance

_REMEMBERED: Final = 4096
"""Descriptions whose entities are kept: those of one dataset serve both of its tasks."""


class Part(Protocol):
    """What the parts of a system have in common."""

    @property
    def name(self) -> str:
        """How results name it."""
        ...

    @property
    def identity(self) -> Mapping[str, str]:
        """What tells it from any other of its name."""
        ...

    @property
    def oracle(self) -> bool:
        """Whether it is told gold."""
        ...

    @property
    def unmasked_text_to(self) -> str:
        """The recipient of what it reads, see `SystemCard`."""
        ...

    def reads(self, sample: Sample) -> Mapping[str, Any]:
        """All of a sample that its answer depends on, as JSON takes it."""
        ...


class EntitySource(Part, Protocol):
    """Brings the entities of a sample."""

    def entities(self, sample: Sample) -> list[Candidate]:
        """The entities by place in the description, each text once per type."""
        ...


class RelevanceSource(Part, Protocol):
    """Tells which entities the query of a sample needs, given its entities."""

    def needed(self, sample: Sample, entities: Sequence[Candidate]) -> list[str]:
        """Texts of the needed ones among the entities, each once, in their order."""
        ...


class DetectedEntities:
    """The entities that a detector finds (`EntitySource`).

    Args:
        detector: finds them.
        unmasked_text_to: recipient of the texts, see `SystemCard`; `THIS_MACHINE` if none.
    """

    oracle = False

    def __init__(self, detector: Detector, unmasked_text_to: str = UNKNOWN_RECIPIENT) -> None:
        self.unmasked_text_to = unmasked_text_to
        self.name = detector.name
        self.identity = detector.identity
        self._detect = lru_cache(_REMEMBERED)(detector.detect)

    def reads(self, sample: Sample) -> Mapping[str, Any]:
        """The description alone."""
        return {"description": sample.description}

    def entities(self, sample: Sample) -> list[Candidate]:
        """Its spans as texts, each at its first place.

        Raises:
            ValueError: a span is not in the text; Python would cut it, or count from the end.
        """
        first: dict[tuple[str, str], int] = {}
        length = len(sample.description)
        for span in self._detect(sample.description):
            if not 0 <= span.start < span.end <= length:
                raise ValueError(f"span {span.start}:{span.end} of a text of {length} characters")
            first.setdefault((sample.description[span.start : span.end], span.type), span.start)
        return [Candidate(text, pii_type, start) for (text, pii_type), start in first.items()]


@dataclass(frozen=True, slots=True)
class _Gold:
    """What the parts that are gold have in common (`Part`)."""

    name: str = GOLD
    oracle: bool = True
    unmasked_text_to: str = THIS_MACHINE

    @property
    def identity(self) -> Mapping[str, str]:
        """Nothing but its name."""
        return {}


@dataclass(frozen=True, slots=True)
class GoldEntities(_Gold):
    """The entities of the annotation (`EntitySource`)."""

    def reads(self, sample: Sample) -> Mapping[str, Any]:
        """Description and entities."""
        entities = [[e.text, e.type, e.start] for e in gold_candidates(sample)]
        return {"description": sample.description, "entities": entities}

    def entities(self, sample: Sample) -> list[Candidate]:
        """E."""
        return gold_candidates(sample)


@dataclass(frozen=True, slots=True)
class PredictedRelevance:
    """The choice of a relevance system (`RelevanceSource`).

    Attributes:
        unmasked_text_to: recipient of the texts, see `SystemCard`; `THIS_MACHINE` if none.
    """

    relevance: Relevance
    oracle: bool = False
    unmasked_text_to: str = UNKNOWN_RECIPIENT

    @property
    def name(self) -> str:
        """The relevance system's."""
        return self.relevance.name

    @property
    def identity(self) -> Mapping[str, str]:
        """The relevance system's."""
        return self.relevance.identity

    def reads(self, sample: Sample) -> Mapping[str, Any]:
        """Description and query."""
        return {"description": sample.description, "query": sample.query}

    def needed(self, sample: Sample, entities: Sequence[Candidate]) -> list[str]:
        """Those that reach the threshold."""
        return choose(self.relevance, sample.query or "", sample.description, entities)


@dataclass(frozen=True, slots=True)
class GoldRelevance(_Gold):
    """The needed entities of the annotation, as far as they are among those given.

    It adds no entity: what the source missed or cut otherwise stays missed
    (`RelevanceSource`). Texts are compared as the scorer compares them.
    """

    def reads(self, sample: Sample) -> Mapping[str, Any]:
        """The related entities."""
        return {"related": [entity.text for entity in sample.related]}

    def needed(self, sample: Sample, entities: Sequence[Candidate]) -> list[str]:
        """The entities whose text is that of a related one."""
        related = {normalise(entity.text) for entity in sample.related}
        found = (entity.text for entity in entities if normalise(entity.text) in related)
        return [*dict.fromkeys(found)]
