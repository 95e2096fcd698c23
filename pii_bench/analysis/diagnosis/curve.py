"""Leak against over-masking over the threshold of a system that gives scores.

Relevance systems give the scores behind a stored run again, without any detector.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from pii_bench.analysis.diagnosis.exposure import Exposure, Judge
from pii_bench.errors import PiiBenchError
from pii_bench.masking.masked import make_plan
from pii_bench.scorer import normalise
from pii_bench.scorer.locate import locator_of
from pii_bench.systems.base import GOLD
from pii_bench.systems.composed import RelevanceSystem
from pii_bench.systems.parts import GoldEntities, PredictedRelevance
from pii_bench.systems.relevance.base import Candidate, gold_candidates
from pii_bench.systems.relevance.catalog import FITTED, build_relevance

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pii_bench.datasets.sample import Sample
    from pii_bench.ranking.stored import Run
    from pii_bench.systems.predictions import Prediction
    from pii_bench.systems.relevance.base import Relevance


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


@dataclass(frozen=True, slots=True)
class StoredCandidates:
    """The entities of stored detection answers, as candidates.

    A stored answer has texts, not places: a text counts where it first occurs, which may be
    before the place where the detector saw it. So a few scores differ from those of the run.

    Attributes:
        predictions: sample id to detection prediction.
    """

    predictions: Mapping[str, Prediction]

    def __call__(self, sample: Sample) -> list[Candidate]:
        """The candidates of a sample by place; none where it has no answer."""
        answer = self.predictions.get(sample.id)
        subjects = () if answer is None else answer.subjects or ()
        locator = locator_of(sample.description)
        candidates = [
            Candidate(text, pii_type, places[0][0] if places else 0)
            for subject in subjects
            for text, pii_type in subject
            for places in [locator.spans(text)]
        ]
        return sorted(candidates, key=lambda candidate: candidate.start)


def find_scores(
    runs: Iterable[Run],
) -> tuple[list[tuple[Run, ScoredCandidates]], list[str]]:
    """Find what gives the scores of runs: those of relevance systems with a fitted threshold.

    Returns:
        Runs with their scores; and the runs whose system cannot give the same scores today
        (not installed, or its threshold or weights have changed), each with the reason.
    """
    found: list[tuple[Run, ScoredCandidates]] = []
    left_out: list[str] = []
    built: dict[str, Relevance | PiiBenchError] = {}
    for run in runs:
        card = run.manifest.system
        detection = run.detection
        if card.prompt not in FITTED or detection is None:
            continue
        if card.prompt not in built:
            built[card.prompt] = _build(card.prompt)
        owner = f"the curve of {card.model}, {card.prompt} on {run.dataset.source}"
        match built[card.prompt]:
            case PiiBenchError() as error:
                left_out.append(f"{owner}: {error}")
            case relevance if _hash_of(relevance) != card.prompt_sha256:
                what = "its threshold or weights have changed since; run again"
                left_out.append(f"{owner}: {what}")
            case relevance:
                found.append((run, ScoredCandidates(relevance, _candidates(card.model, detection))))
    return found, left_out


def _build(name: str) -> Relevance | PiiBenchError:
    try:
        return build_relevance(name)
    except PiiBenchError as error:
        return error


def _hash_of(relevance: Relevance) -> str:
    """What the card of a run with this relevance says of it."""
    return RelevanceSystem(GoldEntities(), PredictedRelevance(relevance)).card.prompt_sha256


def _candidates(model: str, detection: Run) -> Callable[[Sample], list[Candidate]]:
    return gold_candidates if model == GOLD else StoredCandidates(detection.predictions)
