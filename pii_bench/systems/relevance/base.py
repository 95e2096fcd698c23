"""The interface of a relevance system."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


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
