"""Leak and over-masking: what a masked text still shows, and what it masks needlessly.

Both are judged on what was really masked (`masking.masked`), by the units of the scorer
(`scorer.masked_text`): an entity that is masked as part of something longer does not leak, though
its span is wrong. A text without a place (foreign data) is left out. For relevance systems both
can be computed at any threshold, because the scores behind a stored run can be recomputed.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field, fields
from functools import cache, partial
from typing import TYPE_CHECKING, Final

from pii_bench.errors import PiiBenchError
from pii_bench.masking.masked import make_plan, plan_of
from pii_bench.runs.evaluation import gold_texts, tiers_of
from pii_bench.scorer import normalise
from pii_bench.scorer.locate import locator_of
from pii_bench.systems.base import GOLD
from pii_bench.systems.composed import GoldEntities, PredictedRelevance, RelevanceSystem
from pii_bench.systems.relevance.base import Candidate, gold_candidates
from pii_bench.systems.relevance.catalog import FITTED, build_relevance

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pii_bench.datasets.sample import Sample
    from pii_bench.ranking.stored import Run
    from pii_bench.scorer.locate import Span
    from pii_bench.scorer.masked_text import GoldTexts
    from pii_bench.systems.predictions import Prediction
    from pii_bench.systems.relevance.base import Relevance

TIERS: Final = (1, 2, 3)

POINTS: Final = 100
"""The most thresholds of a curve between its ends, spread evenly by rank of the scores."""


@dataclass(frozen=True, slots=True)
class Exposure:
    """Counts of what masking hid and left, which add up over samples.

    Attributes:
        unneeded: number of texts that the query does not need, by tier (`TIERS`).
        leaked: those of them that are not masked: part of an occurrence can be read.
        needed: number of texts that the query needs.
        needed_masked: those of them of which no occurrence can be read in full.
        other_characters: number of characters outside of annotated texts, without white space.
        other_characters_masked: those of them that are masked.
        repeated: unneeded texts with more than one occurrence.
        repeated_in_part: those of them with masked and unmasked occurrences.
        repeated_open: those of them without a masked occurrence.
    """

    unneeded: Counter[int] = field(default_factory=Counter)
    leaked: Counter[int] = field(default_factory=Counter)
    needed: int = 0
    needed_masked: int = 0
    other_characters: int = 0
    other_characters_masked: int = 0
    repeated: int = 0
    repeated_in_part: int = 0
    repeated_open: int = 0

    def __add__(self, other: Exposure) -> Exposure:
        names = [each.name for each in fields(self)]
        return Exposure(*(getattr(self, name) + getattr(other, name) for name in names))

    @property
    def leak(self) -> float | None:
        """Share of unneeded texts that leak, weighted by tier; None if there are none."""
        return _rate(_weigh(self.leaked), _weigh(self.unneeded))

    @property
    def plain_leak(self) -> float | None:
        """Share of unneeded texts that leak, unweighted; None if there are none."""
        return _rate(self.leaked.total(), self.unneeded.total())

    def leak_of(self, tier: int) -> float | None:
        """Return the share of unneeded texts of one tier that leak; None if there are none."""
        return _rate(self.leaked[tier], self.unneeded[tier])

    @property
    def over_masking(self) -> float | None:
        """Share of needed texts that are masked; None if there are none."""
        return _rate(self.needed_masked, self.needed)

    @property
    def text_over_masking(self) -> float | None:
        """Share of the characters that are no PII that are masked; None if there are none."""
        return _rate(self.other_characters_masked, self.other_characters)


def judge(sample: Sample, masked: Iterable[Span]) -> Exposure:
    """Return the exposure of a sample with a query if these spans are masked; they may overlap."""
    return _judge(gold_texts(sample), tiers_of(sample), masked)


def _judge(gold: GoldTexts, tiers: Mapping[str, int], masked: Iterable[Span]) -> Exposure:
    judgement = gold.judge(masked)
    needed: list[int] = []
    unneeded: list[tuple[int, int, int]] = []
    for text, hidden, readable in zip(
        gold.texts, judgement.hidden, judgement.readable, strict=True
    ):
        if text.spans and text.needed:
            needed.append(readable)
        elif text.spans:
            unneeded.append((tiers[text.text], hidden, len(text.spans)))
    repeated = [(hidden, places) for _, hidden, places in unneeded if places > 1]
    return Exposure(
        unneeded=Counter(tier for tier, _, _ in unneeded),
        leaked=Counter(tier for tier, hidden, places in unneeded if hidden < places),
        needed=len(needed),
        needed_masked=needed.count(0),
        other_characters=judgement.other,
        other_characters_masked=judgement.other_masked,
        repeated=len(repeated),
        repeated_in_part=sum(0 < hidden < places for hidden, places in repeated),
        repeated_open=sum(hidden == 0 for hidden, _ in repeated),
    )


def judge_answer(sample: Sample, answer: Prediction) -> Exposure:
    """Judge a sample as masked by a masking prediction.

    Raises:
        ValueError: there is no answer.
    """
    plan = plan_of(sample.description, answer.subjects, answer.related)
    if plan is None:
        raise ValueError(f"sample {sample.id!r} has no answer ({answer.status})")
    return judge(sample, plan.spans)


@dataclass(frozen=True, slots=True)
class ScoredCandidates:
    """A relevance system, and the entities of a sample: gold, or those of a detection run."""

    relevance: Relevance
    candidates: Callable[[Sample], Sequence[Candidate]]

    def scores(self, sample: Sample) -> Mapping[str, float]:
        """Return scores by normalised text: the highest, if a text has several types.

        Minus infinity means that the text is masked at every threshold.
        """
        candidates = self.candidates(sample)
        scores = self.relevance.scores(sample.query or "", sample.description, candidates)
        best: dict[str, float] = {}
        for candidate, score in zip(candidates, scores, strict=True):
            text = normalise(candidate.text)
            best[text] = max(score, best.get(text, score))
        return best


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """The exposure at one threshold.

    Attributes:
        threshold: lowest score of a kept text; infinity masks everything detected.
        own: whether it is the system's own threshold.
    """

    threshold: float
    own: bool
    exposure: Exposure


def curve(system: ScoredCandidates, samples: Sequence[Sample]) -> list[CurvePoint]:
    """Return the exposure of a system over a range of thresholds; skip samples without a query.

    Returns:
        Points at infinity, at up to `POINTS` scores of the system and at its own threshold,
        highest threshold first.
    """
    judged = [
        _steps(sample, system.scores(sample)) for sample in samples if sample.query is not None
    ]
    levels = sorted(level for own, _ in judged for level in own)
    last = len(levels) - 1
    # Evenly by rank, the first and the last among them.
    places = {round(last * point / (POINTS - 1)) for point in range(POINTS)} if levels else set()
    own_threshold = system.relevance.threshold
    thresholds = {math.inf, own_threshold, *(levels[place] for place in places)}
    return [
        CurvePoint(
            threshold,
            own=threshold == own_threshold,
            exposure=sum(
                (exposures[bisect_left(own, threshold)] for own, exposures in judged),
                start=Exposure(),
            ),
        )
        for threshold in sorted(thresholds, reverse=True)
    ]


def _steps(sample: Sample, scores: Mapping[str, float]) -> tuple[list[float], list[Exposure]]:
    """Return the distinct finite scores of a sample, ascending, and its exposure at each.

    One more exposure, at the end, is for a threshold above all scores.
    """
    levels = sorted({score for score in scores.values() if score > -math.inf})
    locator = locator_of(sample.description)
    # Spans do not depend on types.
    detected = [(text, "") for text in scores]
    gold, tiers = gold_texts(sample), tiers_of(sample)
    exposures = []
    for least in (*levels, math.inf):
        kept = {text for text, score in scores.items() if score >= least}
        plan = make_plan(sample.description, detected, kept, locator)
        exposures.append(_judge(gold, tiers, plan.spans))
    return levels, exposures


def stored_candidates(detected: Mapping[str, Prediction], sample: Sample) -> list[Candidate]:
    """Return the entities of a stored detection answer as candidates, ordered by place.

    Stored answers have no places, so each text gets its first occurrence, which may not be the
    one that the detector found. A few scores can differ from those of the run.
    """
    answer = detected.get(sample.id)
    subjects = () if answer is None else answer.subjects or ()
    locator = locator_of(sample.description)
    candidates = []
    for subject in subjects:
        for text, pii_type in subject:
            places = locator.spans(text)
            candidates.append(Candidate(text, pii_type, places[0][0] if places else 0))
    return sorted(candidates, key=lambda candidate: candidate.start)


def find_scores(runs: Iterable[Run]) -> tuple[list[tuple[Run, ScoredCandidates]], list[str]]:
    """Rebuild the relevance systems with a fitted threshold behind stored runs.

    Returns:
        Runs with their systems, and messages about runs whose system cannot be rebuilt as it was
        (not installed, or its threshold or weights have changed).
    """
    systems: list[tuple[Run, ScoredCandidates]] = []
    left_out: list[str] = []
    build = cache(build_relevance)
    for run in runs:
        card = run.manifest.system
        if card.prompt not in FITTED or run.detection is None:
            continue
        owner = f"the curve of {card.model}, {card.prompt} on {run.dataset.source}"
        try:
            relevance = build(card.prompt)
        except PiiBenchError as error:
            left_out.append(f"{owner}: {error}")
            continue
        current = RelevanceSystem(GoldEntities(), PredictedRelevance(relevance)).card
        if current.prompt_sha256 != card.prompt_sha256:
            left_out.append(f"{owner}: its threshold or weights have changed since; run again")
            continue
        candidates: Callable[[Sample], list[Candidate]] = gold_candidates
        if card.model != GOLD:
            candidates = partial(stored_candidates, run.detection.predictions)
        systems.append((run, ScoredCandidates(relevance, candidates)))
    return systems, left_out


def _weigh(counts: Counter[int]) -> int:
    return sum(tier * count for tier, count in counts.items())


def _rate(part: int, whole: int) -> float | None:
    return part / whole if whole else None
