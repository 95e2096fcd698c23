"""Leak against over-masking: what a masked text still shows, and what it hides in vain.

Both are judged on what was really masked (`masking.masked`), by the units of the scorer
(`scorer.masked_text`): an entity that was cut out as a part of something longer does not leak,
though its span was wrong. A text that has no place (foreign data) is left out.

Of relevance systems, which give the scores behind a stored run again without any detector, both
are told over the threshold.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass, fields
from functools import cache
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
    from pii_bench.systems.predictions import Prediction
    from pii_bench.systems.relevance.base import Relevance

TIERS: Final = (1, 2, 3)

POINTS: Final = 100
"""Thresholds of a curve between its ends, at most: each lets in as many texts as the next."""


@dataclass(frozen=True, slots=True)
class Exposure:
    """What masking did, in numbers that can be summed over samples.

    Attributes:
        unneeded: texts that the query does not need, one number per tier (`TIERS`).
        leaked: those of them that are not masked: a part of an occurrence can be read. A text
            is masked only if every occurrence is.
        needed: texts that the query needs.
        needed_masked: those of them of which no occurrence can be read in full.
        other: characters that are neither white space nor part of an annotated text.
        other_masked: those of them that are masked.
        repeated: unneeded texts with more than one occurrence.
        repeated_in_part: those of them of which some occurrences are masked and some are not.
        repeated_open: those of them of which no occurrence is masked.
    """

    unneeded: tuple[int, ...] = (0, 0, 0)
    leaked: tuple[int, ...] = (0, 0, 0)
    needed: int = 0
    needed_masked: int = 0
    other: int = 0
    other_masked: int = 0
    repeated: int = 0
    repeated_in_part: int = 0
    repeated_open: int = 0

    def __add__(self, other: Exposure) -> Exposure:
        return Exposure(
            unneeded=_add(self.unneeded, other.unneeded),
            leaked=_add(self.leaked, other.leaked),
            **{name: getattr(self, name) + getattr(other, name) for name in _NUMBERS},
        )

    @property
    def leak(self) -> float | None:
        """Leaked of unneeded texts, each weighted by its tier; None where there are none."""
        return _rate(_weigh(self.leaked), _weigh(self.unneeded))

    @property
    def plain_leak(self) -> float | None:
        """Leaked of unneeded texts, all alike; None where there are none."""
        return _rate(sum(self.leaked), sum(self.unneeded))

    def leak_of(self, tier: int) -> float | None:
        """Leaked of unneeded texts of one tier; None where there are none."""
        return _rate(self.leaked[tier - 1], self.unneeded[tier - 1])

    @property
    def over_masking(self) -> float | None:
        """Masked of needed texts; None where there are none."""
        return _rate(self.needed_masked, self.needed)

    @property
    def text_over_masking(self) -> float | None:
        """Masked of the characters that are no PII; None where there are none."""
        return _rate(self.other_masked, self.other)


_NUMBERS: Final = tuple(
    field.name for field in fields(Exposure) if field.name not in {"unneeded", "leaked"}
)


class Judge:
    """Judges masked versions of one sample's description.

    Args:
        sample: gold, with a query.
    """

    def __init__(self, sample: Sample) -> None:
        self._gold = gold_texts(sample)
        tiers = tiers_of(sample)
        # 0 for a needed text, None for one without a place.
        self._tiers = [
            (0 if each.needed else tiers[each.text]) if each.spans else None
            for each in self._gold.texts
        ]

    def judge(self, masked: Iterable[Span]) -> Exposure:
        """What the description shows and hides with these spans masked; they may overlap."""
        judgement = self._gold.judge(masked)
        unneeded, leaked = [0] * len(TIERS), [0] * len(TIERS)
        needed = needed_masked = repeated = repeated_in_part = repeated_open = 0
        for each, tier, hidden, readable in zip(
            self._gold.texts, self._tiers, judgement.hidden, judgement.readable, strict=True
        ):
            if tier is None:
                continue
            if tier == 0:
                needed += 1
                needed_masked += readable == 0
                continue
            leaks = hidden < len(each.spans)
            unneeded[tier - 1] += 1
            leaked[tier - 1] += leaks
            if len(each.spans) > 1:
                repeated += 1
                repeated_in_part += leaks and hidden > 0
                repeated_open += hidden == 0
        return Exposure(
            unneeded=tuple(unneeded),
            leaked=tuple(leaked),
            needed=needed,
            needed_masked=needed_masked,
            other=judgement.other,
            other_masked=judgement.other_masked,
            repeated=repeated,
            repeated_in_part=repeated_in_part,
            repeated_open=repeated_open,
        )


def judge_answer(sample: Sample, answer: Prediction) -> Exposure:
    """Judge a sample as masked by a masking prediction.

    Raises:
        ValueError: there is no answer; what a guard does then is its own choice (`account`).
    """
    plan = plan_of(sample.description, answer.subjects, answer.related)
    if plan is None:
        raise ValueError(f"sample {sample.id!r} has no answer ({answer.status})")
    return Judge(sample).judge(plan.spans)


@dataclass(frozen=True, slots=True)
class Account:
    """Leak and over-masking over a dataset, and what the failures make of them.

    A guard that gets no answer for a text either lets it pass as it is (it fails open) or
    blocks it, which hides all of it (it fails closed).

    Attributes:
        samples: gold samples with a query.
        answered: samples with an answer.
        failed: samples that the model failed; the rest was never scored.
        of_answered: over the answered samples alone.
        open: over answered and failed samples, where failed ones pass unmasked.
        closed: over the same, where failed ones are hidden.
    """

    samples: int
    answered: int
    failed: int
    of_answered: Exposure
    open: Exposure
    closed: Exposure


def account(samples: Sequence[Sample], answers: Mapping[str, Prediction]) -> Account:
    """Account for masking predictions (sample id to prediction).

    Samples that were never answered for want of the network or of money are not failures of
    the model: they are in `samples` alone.
    """
    asked = [sample for sample in samples if sample.query is not None]
    answered = failed = 0
    of_answered = passed = blocked = Exposure()
    for sample in asked:
        answer = answers.get(sample.id)
        if answer is None or not answer.status.scored:
            continue
        if answer.status.answered:
            answered += 1
            of_answered += judge_answer(sample, answer)
        else:
            failed += 1
            judge = Judge(sample)
            passed += judge.judge([])
            blocked += judge.judge([(0, len(sample.description))])
    return Account(
        samples=len(asked),
        answered=answered,
        failed=failed,
        of_answered=of_answered,
        open=of_answered + passed,
        closed=of_answered + blocked,
    )


@dataclass(frozen=True, slots=True)
class ScoredCandidates:
    """A relevance system over entities from anywhere: how much a query needs each text.

    Attributes:
        relevance: gives the scores.
        candidates: the entities of a sample: `gold_candidates`, a detector's, or those of a
            stored detection run.
    """

    relevance: Relevance
    candidates: Callable[[Sample], Sequence[Candidate]]

    def scores(self, sample: Sample) -> Mapping[str, float]:
        """By normalised text; the largest where a text has several types.

        What no threshold lets pass has minus infinity.
        """
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


def curve(system: ScoredCandidates, samples: Sequence[Sample]) -> list[CurvePoint]:
    """Leak and over-masking from the threshold that keeps least to the one that keeps most.

    Args:
        system: what is moved along its threshold.
        samples: gold; those without a query do not count.

    Returns:
        The point at infinity, at most `POINTS` scores of the system, and its own threshold,
        highest first.
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
    """The different scores of a sample, lowest first, and its exposure from each of them on.

    The last exposure, one more than there are scores, is where nothing is kept. Minus infinity is
    no step.
    """
    levels = sorted({score for score in scores.values() if score > -math.inf})
    judge, locator = Judge(sample), locator_of(sample.description)
    # Spans do not depend on types.
    detected = [(text, "") for text in scores]
    exposures = []
    for least in (*levels, math.inf):
        kept = {text for text, score in scores.items() if score >= least}
        plan = make_plan(sample.description, detected, kept, locator)
        exposures.append(judge.judge(plan.spans))
    return levels, exposures


def stored_candidates(sample: Sample, answer: Prediction | None) -> list[Candidate]:
    """The entities of a stored detection answer, as candidates by place; none without an answer.

    A stored answer has texts, not places: a text counts where it first occurs, which may be
    before the place where the detector saw it. So a few scores differ from those of the run.
    """
    subjects = () if answer is None else answer.subjects or ()
    locator = locator_of(sample.description)
    candidates = []
    for subject in subjects:
        for text, pii_type in subject:
            places = locator.spans(text)
            candidates.append(Candidate(text, pii_type, places[0][0] if places else 0))
    return sorted(candidates, key=lambda candidate: candidate.start)


def find_scores(runs: Iterable[Run]) -> tuple[list[tuple[Run, ScoredCandidates]], list[str]]:
    """Find what gives the scores of runs: those of relevance systems with a fitted threshold.

    Returns:
        Runs with their scores; and the runs whose system cannot give the same scores today
        (not installed, or its threshold or weights have changed), each with the reason.
    """
    found: list[tuple[Run, ScoredCandidates]] = []
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
        today = RelevanceSystem(GoldEntities(), PredictedRelevance(relevance)).card
        if today.prompt_sha256 != card.prompt_sha256:
            what = "its threshold or weights have changed since; run again"
            left_out.append(f"{owner}: {what}")
        else:
            found.append((run, ScoredCandidates(relevance, _candidates(card.model, run.detection))))
    return found, left_out


def _candidates(model: str, detection: Run) -> Callable[[Sample], list[Candidate]]:
    if model == GOLD:
        return gold_candidates
    return lambda sample: stored_candidates(sample, detection.predictions.get(sample.id))


def _weigh(counts: tuple[int, ...]) -> int:
    return sum(tier * count for tier, count in zip(TIERS, counts, strict=True))


def _add(counts: tuple[int, ...], others: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(a + b for a, b in zip(counts, others, strict=True))


def _rate(part: int, whole: int) -> float | None:
    return part / whole if whole else None
