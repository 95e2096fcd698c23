"""Evaluation of predictions against gold over a dataset."""

from __future__ import annotations

from array import array
from collections import Counter
from dataclasses import dataclass, field
from math import isnan, nan
from typing import TYPE_CHECKING

from pii_bench.datasets.sample import applicable
from pii_bench.masking.masked import plan_of
from pii_bench.scorer import (
    PRF,
    Counts,
    MaskedTextScore,
    macro,
    micro,
    normalise,
    score_detection,
    score_masking,
    score_query_related,
)
from pii_bench.scorer.locate import Strictness, locator_of
from pii_bench.scorer.masked_text import (
    GoldTexts,
    Judgement,
    TextTrace,
    Trace,
    find_traces,
    judge_rewriting,
    score_judgement,
)
from pii_bench.tasks import Task
from pii_bench.taxonomy import sensitivity

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pii_bench.datasets.sample import Sample
    from pii_bench.systems.predictions import Prediction
    from pii_bench.tasks import Status


@dataclass(frozen=True, slots=True)
class SampleScore:
    """The score of one sample in one task.

    Attributes:
        metrics: metric name to precision, recall and F1 of the sample.
        counts: metric name to counts that can be summed, for the metrics that have them.
        predicted: number of distinct predicted texts.
        hallucinated: number of them that do not occur in the description (`Strictness.EQUAL`).
        masked_text: protection and retention of the masked text; masking and rewriting only.
        weighted_protection: protection with each text weighted by its sensitivity tier.
    """

    id: str
    status: Status
    metrics: Mapping[str, PRF]
    counts: Mapping[str, Counts]
    predicted: int
    hallucinated: int
    masked_text: MaskedTextScore | None = None
    weighted_protection: float | None = None


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The scores of one task over a dataset.

    Attributes:
        gold: number of samples that the task applies to; the denominator of coverage.
        scores: of the scored samples, in the order of the dataset.
        statuses: number of samples per status; samples without a response are not counted.
    """

    task: Task
    gold: int
    scores: Sequence[SampleScore] | CompactScores
    statuses: Mapping[Status, int]

    @property
    def complete(self) -> bool:
        """True if every gold sample is scored."""
        return len(self.scores) == self.gold

    def macro(self, metric: str) -> PRF | None:
        """Return the mean over the scored samples; None if there are none."""
        return macro([score.metrics[metric] for score in self.scores])

    def micro(self, metric: str) -> PRF | None:
        """Return the scores of the summed counts; None if no sample is scored."""
        return micro([score.counts[metric] for score in self.scores])

    @property
    def masked_texts(self) -> list[MaskedTextScore]:
        """The masked-text scores of the scored samples; empty for other tasks."""
        return [score.masked_text for score in self.scores if score.masked_text is not None]


def evaluate(
    task: Task, samples: Sequence[Sample], predictions: Mapping[str, Prediction]
) -> Evaluation:
    """Score predictions (sample id to prediction) against gold samples.

    A sample on which the model failed scores 0; a sample whose call failed, or without a response,
    leaves the evaluation incomplete.
    """
    tally = Tally(task, [])
    for sample in samples:
        tally.add(sample, predictions.get(sample.id))
    return tally.evaluation


class Tally:
    """Accumulates an evaluation sample by sample, in a list or a compact table of scores."""

    def __init__(self, task: Task, scores: list[SampleScore] | CompactScores) -> None:
        self.task, self._scores = task, scores
        self._gold = 0
        self._statuses: Counter[Status] = Counter()

    def add(self, sample: Sample, prediction: Prediction | None) -> None:
        """Count a gold sample and score its prediction, if the task applies to it."""
        if not applicable(self.task, [sample]):
            return
        self._gold += 1
        if prediction is not None:
            self._statuses[prediction.status] += 1
            if prediction.status.scored:
                self._scores.append(score_sample(self.task, sample, prediction))

    @property
    def evaluation(self) -> Evaluation:
        """The evaluation of the samples added so far."""
        scores = tuple(self._scores) if isinstance(self._scores, list) else self._scores
        return Evaluation(self.task, self._gold, scores, self._statuses)


def score_sample(task: Task, sample: Sample, prediction: Prediction) -> SampleScore:
    """Score one sample with a scored status; a failed one has no predicted texts."""
    subjects, related = prediction.subjects, prediction.related
    gold_related = [entity.text for entity in sample.related]
    metrics: dict[str, PRF]
    counts: dict[str, Counts]
    texts: set[str]
    masked_text = weighted = None
    match task:
        case Task.DETECTION:
            detection = score_detection(subjects, sample.gold_subjects)
            metrics = {
                "strict": detection.strict,
                "entity": detection.entity,
                "entity_matched": detection.entity_matched,
                "rouge_l": detection.rouge_l,
            }
            counts = {"strict": detection.strict_counts, "entity": detection.entity_counts}
            texts = _texts(subjects)
        case Task.QUERY_RELATED:
            query = score_query_related(related, gold_related)
            metrics = {"exact": query.exact, "rouge_l": query.rouge_l}
            counts = {"exact": query.counts}
            texts = set(related or ())
        case Task.MASKING:
            found = None if subjects is None else _texts(subjects)
            masking = score_masking(
                found, related, [entity.text for entity in sample.entities], gold_related
            )
            metrics = {"exact": masking.exact, "rouge_l": masking.rouge_l}
            counts = {"exact": masking.counts}
            texts = (found or set()) - set(related or ())
            standard = gold_texts(sample)
            plan = plan_of(sample.description, subjects, related)
            judgement = None if plan is None else standard.judge(plan.spans)
            masked_text, weighted = _masked_text_scores(sample, standard, judgement)
        case Task.REWRITE:
            traces = traces_of(sample, prediction.rewritten)
            metrics, counts = _score_sets(sample, traces)
            texts = set()
            standard = gold_texts(sample)
            judgement = None if traces is None else judge_rewriting(traces)
            masked_text, weighted = _masked_text_scores(sample, standard, judgement)
    distinct = {normalise(text) for text in texts}
    locator = locator_of(sample.description)
    return SampleScore(
        id=sample.id,
        status=prediction.status,
        metrics=metrics,
        counts=counts,
        predicted=len(distinct),
        hallucinated=sum(
            bool(text) and not locator.spans(text, Strictness.EQUAL) for text in distinct
        ),
        masked_text=masked_text,
        weighted_protection=weighted,
    )


def gold_texts(sample: Sample) -> GoldTexts:
    """Return the gold texts of a sample, against which maskings are judged."""
    entities = ((entity.text, entity.spans) for entity in sample.entities)
    return GoldTexts(sample.description, entities, [entity.text for entity in sample.related])


def tiers_of(sample: Sample) -> dict[str, int]:
    """Return normalised gold text to sensitivity tier (1 to 3), the highest of its entities."""
    tiers: dict[str, int] = {}
    for entity in sample.entities:
        text = normalise(entity.text)
        tiers[text] = max(tiers.get(text, 0), sensitivity(entity.category, entity.type))
    return tiers


def _masked_text_scores(
    sample: Sample, gold: GoldTexts, judgement: Judgement | None
) -> tuple[MaskedTextScore, float]:
    """Return the masked-text score and weighted protection; `judgement` is None for a failure."""
    weighted = score_judgement(gold, judgement, tiers_of(sample))
    return score_judgement(gold, judgement), weighted.protection


def traces_of(sample: Sample, rewritten: str | None) -> tuple[TextTrace, ...] | None:
    """Return what a rewritten text reveals of the gold texts; None for a failure."""
    if rewritten is None:
        return None
    return find_traces(sample.description, rewritten, gold_texts(sample), sample.query or "")


def _score_sets(
    sample: Sample, traces: Sequence[TextTrace] | None
) -> tuple[dict[str, PRF], dict[str, Counts]]:
    """Score a rewritten text as a set of masked texts, and count its leaks by kind.

    A gold text counts as masked if the rewritten text reveals nothing of it, or, for a needed one,
    not all of it. The leak counts are over the gold texts that are not needed.
    """
    shown = [item.text.text for item in traces or () if item.leaks or item.trace.whole]
    entities = [entity.text for entity in sample.entities]
    sets = score_masking(
        None if traces is None else entities,
        shown,
        entities,
        [entity.text for entity in sample.related],
    )
    unneeded = [item for item in traces or () if not item.text.needed]
    counts = {"exact": sets.counts}
    for trace in (Trace.READABLE, Trace.RESTATED, Trace.PART):
        leaks = sum(item.trace is trace for item in unneeded)
        counts[f"leak_{trace}"] = Counts(leaks, leaks, len(unneeded))
    return {"exact": sets.exact, "rouge_l": sets.rouge_l}, counts


def _texts(subjects: Sequence[Sequence[tuple[str, str]]] | None) -> set[str]:
    return {text for subject in subjects or () for text, _ in subject}


@dataclass(slots=True, eq=False, repr=False)
class CompactScores:
    """Sample scores of one task as a flat array; all have the metrics and counts of the first.

    It takes a fraction of the memory: `pii-bench score` reads files of hundreds of thousands of
    lines.

    Attributes:
        metrics: names of the metrics.
        counts: names of the counts.
        numbers: the rows of all samples: three numbers per metric, three per count, and the other
            six of `SampleScore`; NaN for None.
    """

    metrics: list[str] = field(default_factory=list)
    counts: list[str] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    statuses: list[Status] = field(default_factory=list)
    numbers: array[float] = field(default_factory=lambda: array("d"))

    def append(self, score: SampleScore) -> None:
        """Append the score of a sample."""
        if not self.ids:
            self.metrics, self.counts = [*score.metrics], [*score.counts]
        row: list[float | None] = []
        for name in self.metrics:
            metric = score.metrics[name]
            row += metric.precision, metric.recall, metric.f1
        for name in self.counts:
            counts = score.counts[name]
            row += counts.matched, counts.predicted, counts.gold
        left = score.masked_text
        row += score.predicted, score.hallucinated
        row += (left.protection, left.retention, left.collateral) if left else (None,) * 3
        row.append(score.weighted_protection)
        self.ids.append(score.id)
        self.statuses.append(score.status)
        self.numbers.extend(nan if number is None else number for number in row)

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[SampleScore]:
        width = 3 * (len(self.metrics) + len(self.counts)) + 6
        for place, sample_id in enumerate(self.ids):
            row = self.numbers[width * place : width * (place + 1)]
            triples = [row[start : start + 3] for start in range(0, width - 6, 3)]
            metrics, counts = triples[: len(self.metrics)], triples[len(self.metrics) :]
            protection, retention, collateral, weighted = (
                None if isnan(number) else number for number in row[-4:]
            )
            left = None
            if protection is not None and retention is not None:
                left = MaskedTextScore(protection, retention, collateral)
            yield SampleScore(
                id=sample_id,
                status=self.statuses[place],
                metrics={name: PRF(*of) for name, of in zip(self.metrics, metrics, strict=True)},
                counts={
                    name: Counts(*map(int, of))
                    for name, of in zip(self.counts, counts, strict=True)
                },
                predicted=int(row[-6]),
                hallucinated=int(row[-5]),
                masked_text=left,
                weighted_protection=weighted,
            )
