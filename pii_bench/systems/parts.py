"""What composed systems are made of: a source of entities, and a choice of the needed ones.

Either part can be gold. Then the system is an oracle: what is left of its error is the
other part's.

Each part has a `name` for results; an `identity` that tells it from any other of its name; says
whether it is an `oracle`, told gold, and who is sent what it reads (`unmasked_text_to`, see
`SystemCard`); and `reads` all of a sample that its answer depends on, as JSON takes it. A source
of entities brings those of a sample in the order of the description, each text once per type. A
source of relevance tells which of them the query needs: their texts, each once, in their order.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias

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


class PredictedRelevance:
    """The choice of a relevance system (`RelevanceSource`).

    Args:
        relevance: scores the entities.
        unmasked_text_to: recipient of the texts, see `SystemCard`; `THIS_MACHINE` if none.
    """

    oracle = False

    def __init__(self, relevance: Relevance, unmasked_text_to: str = UNKNOWN_RECIPIENT) -> None:
        self.relevance = relevance
        self.unmasked_text_to = unmasked_text_to
        self.name = relevance.name
        self.identity = relevance.identity

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


EntitySource: TypeAlias = DetectedEntities | GoldEntities
RelevanceSource: TypeAlias = PredictedRelevance | GoldRelevance
