"""Relevance systems: their interface, their thresholds, and the trivial ones.

The trivial systems `all`, `none` and `random` do not read the query.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, Protocol

from pii_bench.datasets.sample import spans_of
from pii_bench.errors import PiiBenchError
from pii_bench.files import DATA, RecordError, get, read_object
from pii_bench.scorer.measures import Counts
from pii_bench.scorer.text import text_set
from pii_bench.taxonomy import PiiType

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

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
    """Scores candidates; the query needs those at or above `threshold`."""

    @property
    def name(self) -> str:
        """The name in results."""

    @property
    def identity(self) -> Mapping[str, str]:
        """What identifies it besides the name: versions, thresholds, hashes, seeds."""

    @property
    def threshold(self) -> float:
        """The minimum score of a needed entity."""

    def scores(self, query: str, description: str, candidates: Sequence[Candidate]) -> list[float]:
        """Return one score per candidate, in their order."""


NEVER: Final = -math.inf
"""The score of what no threshold lets pass."""


def gold_candidates(sample: Sample) -> list[Candidate]:
    """Return the gold entities as candidates, by position; each text once per type."""
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
    """Return the texts of the candidates that reach the threshold, each once, in order."""
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
    """Return scores minus their mean: queries differ in their general similarity to all candidates.

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


THRESHOLDS: Final = DATA / "models" / "relevance" / "thresholds.json"


@dataclass(frozen=True, slots=True)
class ScoredSample:
    """The candidates of one sample with their scores.

    Attributes:
        texts: of the candidates.
        scores: one for each.
        needed: texts of the related entities.
    """

    texts: tuple[str, ...]
    scores: tuple[float, ...]
    needed: frozenset[str]

    def f1(self, threshold: float) -> float:
        """Return the exact F1 of the candidates that reach a threshold."""
        chosen = (t for t, score in zip(self.texts, self.scores, strict=True) if score >= threshold)
        return Counts.of(text_set(chosen), text_set(self.needed)).f1


def macro_f1(scored: Sequence[ScoredSample], threshold: float) -> float:
    """Return the mean F1 over at least one sample."""
    return math.fsum(sample.f1(threshold) for sample in scored) / len(scored)


def best_threshold(scored: Sequence[ScoredSample]) -> float:
    """Return the threshold with the largest macro F1; of several the highest.

    It lies halfway between two scores, so that rounding moves no candidate across it.

    Raises:
        PiiBenchError: no candidate may be chosen at all.
    """
    f1 = [sample.f1(float("inf")) for sample in scored]
    total, best, highest = math.fsum(f1), -1.0, 0.0
    levels = _levels(scored)
    # From the highest score down: a score that is let in changes its own samples alone.
    for (score, places), (below, _) in zip(levels, [*levels[1:], levels[-1]], strict=True):
        for place in places:
            new = scored[place].f1(score)
            total += new - f1[place]
            f1[place] = new
        if total > best + 1e-9:
            best, highest = total, (score + below) / 2
    return highest


def share_threshold(scored: Sequence[ScoredSample]) -> float:
    """Return the threshold that selects the needed share of candidates with uniform scores.

    Raises:
        PiiBenchError: no candidate may be chosen at all.
    """
    needed = [
        text in sample.needed
        for sample in scored
        for text, score in zip(sample.texts, sample.scores, strict=True)
        if score > NEVER
    ]
    if not needed:
        raise _nothing_to_choose()
    return 1 - sum(needed) / len(needed)


def _levels(scored: Sequence[ScoredSample]) -> list[tuple[float, set[int]]]:
    """Return every score, highest first, with the indices of the samples that have it."""
    held = sorted(
        (
            (score, place)
            for place, sample in enumerate(scored)
            for score in sample.scores
            if score > NEVER
        ),
        reverse=True,
    )
    if not held:
        raise _nothing_to_choose()
    return [
        (score, {place for _, place in group})
        for score, group in groupby(held, key=lambda item: item[0])
    ]


def _nothing_to_choose() -> PiiBenchError:
    return PiiBenchError("dev must have candidates that are no person's name")


def read_thresholds(path: Path = THRESHOLDS) -> Mapping[str, Mapping[str, Any]]:
    """Read the fitted values of each system, `threshold` among them.

    Raises:
        InputFileError: the file cannot be read or is not of this form.
    """
    return read_object(path, "thresholds of relevance systems", _fitted)


def _fitted(record: dict[str, Any]) -> dict[str, Any]:
    for name, value in record.items():
        if not isinstance(value, dict):
            raise RecordError(f"{name!r} must be an object")
        get(value, "threshold", float, repr(name))
    return record


_SEED: Final = 0


@dataclass(frozen=True, slots=True)
class Constant:
    """Gives every candidate, also names, the same score (`Relevance`).

    Attributes:
        score: 1 chooses all, so that nothing is masked; 0 chooses none, so that all is.
    """

    name: str
    score: float
    threshold: float = 0.5

    @property
    def identity(self) -> Mapping[str, str]:
        """Empty: the name identifies it."""
        return {}

    def scores(
        self,
        query: str,  # noqa: ARG002
        description: str,  # noqa: ARG002
        candidates: Sequence[Candidate],
    ) -> list[float]:
        """Return the same score for each candidate."""
        return [self.score] * len(candidates)


@dataclass(frozen=True, slots=True)
class RandomChoice:
    """Scores candidates at random, uniformly from 0 to 1 (`Relevance`).

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
        """Draw one score per candidate."""
        return [
            NEVER if candidate.type == PiiType.PER else _draw(query, candidate)
            for candidate in candidates
        ]


def _draw(query: str, candidate: Candidate) -> float:
    key = "\0".join([str(_SEED), query, candidate.type, candidate.text])
    # Foreign data may hold half a surrogate pair.
    digest = hashlib.sha256(key.encode("utf-8", "backslashreplace")).digest()
    return int.from_bytes(digest[:4]) / 2**32
