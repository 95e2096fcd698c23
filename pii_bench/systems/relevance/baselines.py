"""Relevance systems that do not read: all, none, and chance."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pii_bench.systems.relevance.base import NEVER
from pii_bench.taxonomy import PiiType

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pii_bench.systems.relevance.base import Candidate

_SEED: Final = 0


@dataclass(frozen=True, slots=True)
class Constant:
    """Gives every candidate, names of persons included, the same score (`Relevance`).

    Attributes:
        score: 1 chooses all, so that nothing is masked; 0 chooses none, so that all is.
    """

    name: str
    score: float
    threshold: float = 0.5

    @property
    def identity(self) -> Mapping[str, str]:
        """Nothing but its name."""
        return {}

    def scores(
        self,
        query: str,  # noqa: ARG002
        description: str,  # noqa: ARG002
        candidates: Sequence[Candidate],
    ) -> list[float]:
        """The score, once per candidate."""
        return [self.score] * len(candidates)


@dataclass(frozen=True, slots=True)
class RandomChoice:
    """Scores a candidate by chance, evenly from 0 to 1 (`Relevance`).

    The draw depends on seed, query and candidate alone, not on what was drawn before. No
    person's name is chosen.

    Attributes:
        threshold: 1 minus the rate at which candidates are chosen.
    """

    threshold: float
    name: str = "random"

    @property
    def identity(self) -> Mapping[str, str]:
        """Seed and threshold."""
        return {"seed": str(_SEED), "threshold": repr(self.threshold)}

    def scores(
        self,
        query: str,
        description: str,  # noqa: ARG002
        candidates: Sequence[Candidate],
    ) -> list[float]:
        """One draw per candidate."""
        return [
            NEVER if candidate.type == PiiType.PER else _draw(query, candidate)
            for candidate in candidates
        ]


def _draw(query: str, candidate: Candidate) -> float:
    key = "\0".join([str(_SEED), query, candidate.type, candidate.text])
    # Foreign data may hold half a surrogate pair.
    digest = hashlib.sha256(key.encode("utf-8", "backslashreplace")).digest()
    return int.from_bytes(digest[:4]) / 2**32
