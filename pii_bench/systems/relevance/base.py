"""Relevance systems: their interface, their thresholds, and the trivial ones.

The trivial systems `all`, `none` and `random` do not read the query.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, Protocol

from pii_bench.errors import PiiBenchError
from pii_bench.files import DATA, RecordError, get, read_object
from pii_bench.scorer.measures import Counts
from pii_bench.scorer.text import text_set
from pii_bench.taxonomy import PiiType

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pii_bench.datasets.sample import Sample


@dataclass(frozen=True, slots=True)
class Candidate:
    """An entity that a query may need; `start` is its first occurrence, in code points."""

    text: str
    type: str
    start: int


class Relevance(Protocol):
    """A relevance system: scores candidates; the query needs those that reach `threshold`."""

    @property
    def name(self) -> str:
        """The name in results."""

    @property
    def identity(self) -> Mapping[str, str]:
        """The settings that results depend on: versions, thresholds, hashes, seeds."""

    @property
    def threshold(self) -> float:
        """The minimum score of a needed entity."""

    def scores(self, query: str, description: str, candidates: Sequence[Candidate]) -> list[float]:
        """Return one score per candidate, in their order."""


NEVER: Final = -math.inf
"""The score of a candidate that no threshold selects, such as a person's name."""


def gold_candidates(sample: Sample) -> list[Candidate]:
    """Return the gold entities as candidates, by position; each text once per type."""
    starts: dict[tuple[str, str], int] = {}
    for entity in sample.entities:
        # In other people's data, an entity's text may be missing from the description.
        start = min((start for start, _ in entity.spans), default=0)
        key = entity.text, entity.type
        starts[key] = min(start, starts.get(key, start))
    candidates = [Candidate(text, pii_type, start) for (text, pii_type), start in starts.items()]
    return sorted(candidates, key=lambda item: (item.start, item.text, item.type))


def choose(
    system: Relevance, query: str, description: str, candidates: Sequence[Candidate]
) -> list[str]:
    """Return the texts of the candidates that reach the threshold, each once, in order."""
    scores = system.scores(query, description, candidates)
    scored = zip(candidates, scores, strict=True)
    chosen = [candidate.text for candidate, score in scored if score >= system.threshold]
    return list(dict.fromkeys(chosen))


def without_names(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return the candidates that are not people's names, which no query needs."""
    return [candidate for candidate in candidates if candidate.type != PiiType.PER]


def relative_scores(
    candidates: Sequence[Candidate], scores: Mapping[Candidate, float]
) -> list[float]:
    """Return scores minus their mean, because some queries resemble all candidates more.

    `scores` lacks the names, which get `NEVER` and are not in the mean.
    """
    counted = [scores[candidate] for candidate in candidates if candidate in scores]
    mean = math.fsum(counted) / len(counted) if counted else 0.0
    return [scores[candidate] - mean if candidate in scores else NEVER for candidate in candidates]


THRESHOLDS: Final = DATA / "models" / "relevance" / "thresholds.json"


@dataclass(frozen=True, slots=True)
class ScoredSample:
    """The texts of the candidates of one sample, their scores, and the texts that are needed."""

    texts: tuple[str, ...]
    scores: tuple[float, ...]
    needed: frozenset[str]

    def f1(self, threshold: float) -> float:
        """Return the exact-match F1 of the candidates that reach a threshold."""
        scored = zip(self.texts, self.scores, strict=True)
        chosen = [text for text, score in scored if score >= threshold]
        return Counts.of(text_set(chosen), text_set(self.needed)).prf.f1


def macro_f1(scored: Sequence[ScoredSample], threshold: float) -> float:
    """Return the mean F1 over at least one sample."""
    return math.fsum(sample.f1(threshold) for sample in scored) / len(scored)


def best_threshold(samples: Sequence[ScoredSample]) -> float:
    """Return the threshold with the largest macro F1; of equals the highest.

    It is the mean of two successive scores, so that rounding does not change a choice.

    Raises:
        PiiBenchError: every candidate is a person's name.
    """
    samples_with: dict[float, set[int]] = {}
    for index, sample in enumerate(samples):
        for score in sample.scores:
            if score > NEVER:
                samples_with.setdefault(score, set()).add(index)
    if not samples_with:
        raise _no_candidates()
    scores = sorted(samples_with, reverse=True)
    f1 = [sample.f1(math.inf) for sample in samples]
    total = math.fsum(f1)
    best_total, best = -1.0, 0.0
    for score, next_score in pairwise([*scores, scores[-1]]):
        # A lower threshold changes only the samples that have this score.
        for index in samples_with[score]:
            new = samples[index].f1(score)
            total += new - f1[index]
            f1[index] = new
        if total > best_total + 1e-9:
            best_total, best = total, (score + next_score) / 2
    return best


def share_threshold(samples: Sequence[ScoredSample]) -> float:
    """Return the threshold by which uniform scores choose as many candidates as are needed.

    Raises:
        PiiBenchError: every candidate is a person's name.
    """
    needed = [
        text in sample.needed
        for sample in samples
        for text, score in zip(sample.texts, sample.scores, strict=True)
        if score > NEVER
    ]
    if not needed:
        raise _no_candidates()
    return 1 - sum(needed) / len(needed)


def _no_candidates() -> PiiBenchError:
    return PiiBenchError("dev must have candidates other than people's names")


def read_thresholds(path: Path = THRESHOLDS) -> Mapping[str, Mapping[str, Any]]:
    """Return, by system, what the file stores: `threshold`, and how it was fitted.

    Raises:
        InputFileError: the file cannot be read or does not have this form.
    """
    return read_object(path, "thresholds of relevance systems", _check_thresholds)


def _check_thresholds(record: dict[str, Any]) -> dict[str, Any]:
    for name, value in record.items():
        if not isinstance(value, dict):
            raise RecordError(f"{name!r} must be an object")
        get(value, "threshold", float, repr(name))
    return record


_SEED: Final = 0


@dataclass(frozen=True, slots=True)
class Constant:
    """Gives every candidate the same score, names included (`Relevance`): 1 chooses all, 0 none."""

    name: str
    score: float
    threshold: float = 0.5

    @property
    def identity(self) -> Mapping[str, str]:
        """Empty, because results depend on the name alone."""
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
    """Scores candidates at random, uniformly from 0 to 1; never chooses a name (`Relevance`).

    A score depends only on seed, query and candidate, not on earlier draws. The threshold is 1
    minus the probability that a candidate is chosen.
    """

    threshold: float
    name: str = "random"

    @property
    def identity(self) -> Mapping[str, str]:
        """The seed and the threshold."""
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
    # Other people's data may contain half a surrogate pair.
    digest = hashlib.sha256(key.encode("utf-8", "backslashreplace")).digest()
    return int.from_bytes(digest[:4]) / 2**32
