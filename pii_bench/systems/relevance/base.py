"""The interface of a relevance system, its candidates, and which of them it chooses."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from pii_bench.datasets.sample import spans_of
from pii_bench.taxonomy import PiiType

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pii_bench.datasets.sample import Sample


@dataclass(frozen=True, slots=True)
class Candidate:
    """An entity that a query may need.

    Attributes:
        text: as the description writes it.
        type: one of the seven types; gold or predicted.
        start: code point of its first occurrence.
    """

    text: str
    type: str
    start: int


class Relevance(Protocol):
    """Scores candidates; those at or above `threshold` are what the query needs."""

    @property
    def name(self) -> str:
        """How results name it."""
        ...

    @property
    def identity(self) -> Mapping[str, str]:
        """What tells it from any other of its name: versions, thresholds, hashes, seeds."""
        ...

    @property
    def threshold(self) -> float:
        """The least score of a needed entity."""
        ...

    def scores(self, query: str, description: str, candidates: Sequence[Candidate]) -> list[float]:
        """One score per candidate, in their order."""
        ...


NEVER: Final = -math.inf
"""The score of what no threshold lets pass."""


def gold_candidates(sample: Sample) -> list[Candidate]:
    """E as candidates, by place in the description; each text once per type."""
    first: dict[tuple[str, str], int] = {}
    for entity in sample.entities:
        spans = spans_of(entity, sample.description)
        # Foreign data may lack the text.
        start = min((start for start, _ in spans), default=0)
        key = entity.text, entity.type
        first[key] = min(start, first.get(key, start))
    ordered = sorted(first.items(), key=lambda item: (item[1], item[0]))
    return [Candidate(text, pii_type, start) for (text, pii_type), start in ordered]


def choose(
    system: Relevance, query: str, description: str, candidates: Sequence[Candidate]
) -> list[str]:
    """Texts of the candidates that reach the system's threshold, each once, in order."""
    scores = system.scores(query, description, candidates)
    reached = (
        candidate.text
        for candidate, score in zip(candidates, scores, strict=True)
        if score >= system.threshold
    )
    return [*dict.fromkeys(reached)]


def relative_scores(
    candidates: Sequence[Candidate], score: Callable[[Sequence[Candidate]], Sequence[float]]
) -> list[float]:
    """Scores minus their mean: queries differ in how near they are to anything at all.

    Args:
        candidates: of one sample.
        score: gives one number for each of at least one candidate. It never sees a person's
            name, which no query needs (benchmark, "How a sample is made", 4): that scores
            `NEVER`, and the mean is over the others.
    """
    others = [candidate for candidate in candidates if candidate.type != PiiType.PER]
    if not others:
        return [NEVER] * len(candidates)
    raw = score(others)
    mean = math.fsum(raw) / len(raw)
    left = iter(raw)
    return [
        NEVER if candidate.type == PiiType.PER else next(left) - mean for candidate in candidates
    ]
