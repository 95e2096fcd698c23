"""A fake detector and a fake relevance system with predictable answers."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pii_bench.scorer.locate import DetectedSpan
from pii_bench.taxonomy import PiiType

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pii_bench.systems.relevance.base import Candidate


@dataclass
class WordDetector:
    """A detector that finds every occurrence of the given words."""

    words: Mapping[str, PiiType]
    name: str = "words"
    identity: Mapping[str, str] = field(default_factory=lambda: {"weights": "w1"})
    types: frozenset[PiiType] = frozenset(PiiType)

    def detect(self, text: str) -> list[DetectedSpan]:
        spans = [
            DetectedSpan(*match.span(), pii_type)
            for word, pii_type in self.words.items()
            for match in re.finditer(re.escape(word), text)
        ]
        return sorted(spans, key=lambda span: span.start)


@dataclass
class NumbersNeeded:
    """A relevance system that chooses texts with a digit."""

    name: str = "numbers"
    identity: Mapping[str, str] = field(default_factory=lambda: {"weights": "r1"})
    threshold: float = 0.5

    def scores(self, query: str, description: str, candidates: Sequence[Candidate]) -> list[float]:
        assert query
        assert all(c.text == description[c.start : c.start + len(c.text)] for c in candidates)
        return [float(any(map(str.isdigit, candidate.text))) for candidate in candidates]
