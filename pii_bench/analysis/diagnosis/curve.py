"""Leak against over-masking over the threshold of a system that gives scores."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from pii_bench.analysis.diagnosis.exposure import Exposure, Judge
from pii_bench.masking.plan import make_plan
from pii_bench.scorer import normalise
from pii_bench.scorer.locate import locator_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pii_bench.datasets.sample import Sample
    from pii_bench.systems.relevance.base import Candidate, Relevance

POINTS: Final = 100
"""Thresholds of a curve between its ends, at most: each lets in as many texts as the next."""


class GivesScores(Protocol):
    """A system that says how much the query of a sample needs each text that it has detected."""

    @property
    def threshold(self) -> float:
        """The least score of a text that it keeps; it masks the rest."""
        ...

    def scores(self, sample: Sample) -> Mapping[str, float]:
        """Every detected text with its score; what no threshold lets pass has minus infinity."""
        ...


@dataclass(frozen=True, slots=True)
class ScoredCandidates:
    """A relevance system over entities from anywhere (`GivesScores`).

    Attributes:
        relevance: gives the scores.
        candidates: the entities of a sample: `gold_candidates`, a detector's, or those of a
            stored detection run.
    """

    relevance: Relevance
    candidates: Callable[[Sample], Sequence[Candidate]]

    @property
    def threshold(self) -> float:
        """The relevance system's."""
        return self.relevance.threshold

    def scores(self, sample: Sample) -> Mapping[str, float]:
        """By normalised text; the largest where a text has several types."""
        candidates = self.candidates(sample)
        given = self.relevance.scores(sample.query or "", sample.description, candidates)
        best: dict[str, float] = {}
        for candidate, score in zip(candidates, given, strict=True):
            text = normalise(candidate.text)
            best[text] = max(score, best.get(text, score))
        return best


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """What masking does at one threshold.

    Attributes:
        threshold: the least score of a text that is kept; infinity masks all that is detected.
        own: whether it is the system's own threshold.
        exposure: over the samples.
    """

    threshold: float
    own: bool
    exposure: Exposure


def curve(system: GivesScores, samples: Sequence[Sample]) -> list[CurvePoint]:
    """Leak and over-masking from the threshold that keeps least to the one that keeps most.

    Args:
        system: what is moved along its threshold.
        samples: gold; those without a query do not count.

    Returns:
        The point at infinity, at most `POINTS` scores of the system, and its own threshold,
        highest first.
    """
    judged = [
        _Steps(sample, system.scores(sample)) for sample in samples if sample.query is not None
    ]
    levels = sorted(level for steps in judged for level in steps.levels)
    thresholds = {math.inf, system.threshold, *_spread(levels)}
    return [
        CurvePoint(
            threshold,
            own=threshold == system.threshold,
            exposure=sum((steps.at(threshold) for steps in judged), start=Exposure()),
        )
        for threshold in sorted(thresholds, reverse=True)
    ]


class _Steps:
    """One sample's exposure, which changes at its own scores alone.

    Attributes:
        levels: its different scores, lowest first, without minus infinity.
    """

    def __init__(self, sample: Sample, scores: Mapping[str, float]) -> None:
        self.levels = sorted({score for score in scores.values() if score > -math.inf})
        self._description = sample.description
        self._judge = Judge(sample)
        self._scores = scores
        self._known: dict[int, Exposure] = {}

    def at(self, threshold: float) -> Exposure:
        step = bisect_left(self.levels, threshold)
        if step not in self._known:
            least = self.levels[step] if step < len(self.levels) else math.inf
            kept = {text for text, score in self._scores.items() if score >= least}
            # Spans do not depend on types.
            detected = [(text, "") for text in self._scores]
            locator = locator_of(self._description)
            plan = make_plan(self._description, detected, kept, locator)
            self._known[step] = self._judge.judge(plan.spans)
        return self._known[step]


def _spread(levels: Sequence[float]) -> list[float]:
    """At most `POINTS` of sorted values, evenly by rank, the first and the last among them."""
    last = len(levels) - 1
    places = {round(last * point / (POINTS - 1)) for point in range(POINTS)} if levels else set()
    return [levels[place] for place in places]
