"""Predictions against gold over a dataset: one mean, one sum, every failure counted."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import isnan, nan
from typing import TYPE_CHECKING, overload

from pii_bench.datasets.sample import applicable, spans_of
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
    Told,
    Trace,
    judge,
    score_judgement,
    tell,
)
from pii_bench.tasks import Task
from pii_bench.taxonomy import sensitivity

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pii_bench.datasets.sample import Sample
    from pii_bench.systems.predictions import Prediction
    from pii_bench.tasks import Status

_OTHERS = 6
"""Texts predicted and hallucinated, and four figures of what is left of a text."""


@dataclass(frozen=True, slots=True)
class SampleScore:
    """One sample under one task.

    Attributes:
        metrics: metric name to precision, recall and F1 of the sample.
        counts: metric name to summable counts, for the metrics that have them.
        predicted: distinct texts predicted.
        hallucinated: those of them that are nowhere in the description (`Strictness.EQUAL`).
        masked_text: of masking and rewriting, what is left of the text.
        weighted_protection: its protection, each text weighed by the tier of its sensitivity.
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
    """One task over a dataset.

    Attributes:
        gold: samples that the task applies to; the denominator of coverage.
        scores: the scored samples, in the dataset's order.
        statuses: how many samples have each status; samples never asked have none.
        repairs: how often each stage of the parser changed a response.
    """

    task: Task
    gold: int
    scores: Sequence[SampleScore]
    statuses: Mapping[Status, int]
    repairs: Mapping[str, int]

    @property
    def complete(self) -> bool:
        """Whether every gold sample is scored."""
        return len(self.scores) == self.gold

    def macro(self, metric: str) -> PRF | None:
        """Mean over the scored samples; None where none is."""
        return macro([score.metrics[metric] for score in self.scores])

    def micro(self, metric: str) -> PRF | None:
        """Counts summed over the scored samples, divided once; None where none is."""
        return micro([score.counts[metric] for score in self.scores])

    @property
    def masked_texts(self) -> list[MaskedTextScore]:
        """Of masking and rewriting, what is left of the texts of the scored samples."""
        return [score.masked_text for score in self.scores if score.masked_text is not None]

    @property
    def predicted(self) -> int:
        """Distinct texts predicted, summed over the samples."""
        return sum(score.predicted for score in self.scores)

    @property
    def hallucinated(self) -> int:
        """Those of them that are nowhere in their description."""
        return sum(score.hallucinated for score in self.scores)


def evaluate(
    task: Task, samples: Sequence[Sample], predictions: Mapping[str, Prediction]
) -> Evaluation:
    """Score predictions (sample id to prediction) against gold samples.

    The mean is over gold: a sample whose model failed scores 0, one whose call failed or
    that was never asked leaves the evaluation incomplete.
    """
    scores: list[SampleScore] = []
    tally = Tally(task, scores)
    for sample in samples:
        tally.add(sample, predictions.get(sample.id))
    return replace(tally.evaluation, scores=tuple(scores))


class Tally:
    """An evaluation that grows sample by sample.

    Attributes:
        task: the task.

    Args:
        task: the task.
        scores: an empty sequence to append to.
    """

    def __init__(self, task: Task, scores: list[SampleScore] | CompactScores) -> None:
        self.task, self._scores = task, scores
        self._gold = 0
        self._statuses: Counter[Status] = Counter()
        self._repairs: Counter[str] = Counter()

    def add(self, sample: Sample, prediction: Prediction | None) -> None:
        """Count a gold sample, if the task applies to it, and score what was predicted."""
        if not applicable(self.task, [sample]):
            return
        self._gold += 1
        if prediction is not None:
            self._statuses[prediction.status] += 1
            self._repairs.update(prediction.repairs)
            if prediction.status.scored:
                self._scores.append(score_sample(self.task, sample, prediction))

    @property
    def evaluation(self) -> Evaluation:
        """What was added so far."""
        return Evaluation(self.task, self._gold, self._scores, self._statuses, self._repairs)


def score_sample(task: Task, sample: Sample, prediction: Prediction) -> SampleScore:
    """Score one sample whose status is scored; a failure is no prediction."""
    subjects, related = prediction.subjects, prediction.related
    gold_related = [entity.text for entity in sample.related]
    metrics: dict[str, PRF]
    counts: dict[str, Counts]
    texts: set[str]
    left = weighted = None
    match task:
        case Task.DETECTION:
            gold = [[(e.text, e.type) for e in subject.entities] for subject in sample.subjects]
            detection = score_detection(subjects, gold)
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
            left, weighted = _left(sample, standard, judgement)
        case Task.REWRITE:
            told = tell_of(sample, prediction.rewritten)
            metrics, counts = _score_sets(sample, told)
            texts = set()
            standard = gold_texts(sample)
            judgement = None if told is None else judge(standard, told)
            left, weighted = _left(sample, standard, judgement)
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
        masked_text=left,
        weighted_protection=weighted,
    )


def gold_texts(sample: Sample) -> GoldTexts:
    """E against which maskings of a sample are judged."""
    entities = ((each.text, spans_of(each, sample.description)) for each in sample.entities)
    return GoldTexts(sample.description, entities, [each.text for each in sample.related])


def tiers_of(sample: Sample) -> dict[str, int]:
    """Normalised text of E to the tier of its sensitivity, 1 to 3; the highest of its entities."""
    tiers: dict[str, int] = {}
    for entity in sample.entities:
        text = normalise(entity.text)
        tiers[text] = max(tiers.get(text, 0), sensitivity(entity.category, entity.type))
    return tiers


def _left(
    sample: Sample, gold: GoldTexts, judgement: Judgement | None
) -> tuple[MaskedTextScore, float]:
    """What is left of the text, None of a failure; and its protection by tier."""
    weighted = score_judgement(gold, judgement, tiers_of(sample))
    return score_judgement(gold, judgement), weighted.protection


def tell_of(sample: Sample, rewritten: str | None) -> tuple[Told, ...] | None:
    """What a rewriting of a sample tells of its gold texts; None of a failure."""
    if rewritten is None:
        return None
    return tell(sample.description, rewritten, gold_texts(sample), sample.query or "")


def _score_sets(
    sample: Sample, told: Sequence[Told] | None
) -> tuple[dict[str, PRF], dict[str, Counts]]:
    """The figures of the sets: hidden is what nothing is told of, or of what is needed not all.

    And the leaks by how they are told, of all gold texts that are not needed.
    """
    shown = [each.text.text for each in told or () if each.leaks or each.trace.whole]
    entities = [entity.text for entity in sample.entities]
    sets = score_masking(
        None if told is None else entities, shown, entities, [each.text for each in sample.related]
    )
    unneeded = [each for each in told or () if not each.text.needed]
    counts = {"exact": sets.counts}
    for trace in (Trace.READABLE, Trace.RESTATED, Trace.PART):
        leaks = sum(each.trace is trace for each in unneeded)
        counts[f"leak_{trace}"] = Counts(leaks, leaks, len(unneeded))
    return {"exact": sets.exact, "rouge_l": sets.rouge_l}, counts


def _texts(subjects: Sequence[Sequence[tuple[str, str]]] | None) -> set[str]:
    return {text for subject in subjects or () for text, _ in subject}


@dataclass(slots=True, eq=False, repr=False)
class CompactScores(Sequence[SampleScore]):
    """Scores of samples under one task; all have the metrics and the counts of the first.

    Attributes:
        metrics: their names.
        counts: likewise.
        ids: of the samples.
        statuses: of the samples.
        numbers: a row for each sample, one behind the other: three of each metric, three of each
            of the counts, and `_OTHERS`; what is None is no number.
    """

    metrics: list[str] = field(default_factory=list)
    counts: list[str] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    statuses: list[Status] = field(default_factory=list)
    numbers: array[float] = field(default_factory=lambda: array("d"))

    def append(self, score: SampleScore) -> None:
        """Add the score of one more sample.

        Raises:
            KeyError: it lacks a metric of the first.
        """
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
        return map(self._score, range(len(self)))

    @overload
    def __getitem__(self, place: int) -> SampleScore: ...
    @overload
    def __getitem__(self, place: slice) -> list[SampleScore]: ...
    def __getitem__(self, place: int | slice) -> SampleScore | list[SampleScore]:
        if isinstance(place, slice):
            return [self._score(each) for each in range(len(self))[place]]
        return self._score(range(len(self))[place])

    @property
    def width(self) -> int:
        """Numbers of a sample."""
        return 3 * (len(self.metrics) + len(self.counts)) + _OTHERS

    def _score(self, place: int) -> SampleScore:
        row = self.numbers[self.width * place : self.width * (place + 1)]
        threes = [row[at : at + 3] for at in range(0, len(row) - _OTHERS, 3)]
        figures, sums = threes[: len(self.metrics)], threes[len(self.metrics) :]
        predicted, hallucinated = map(int, row[-_OTHERS:-4])
        protection, retention, collateral, weighted = map(_number, row[-4:])
        left = None
        if protection is not None and retention is not None:
            left = MaskedTextScore(protection, retention, collateral)
        return SampleScore(
            id=self.ids[place],
            status=self.statuses[place],
            metrics={name: PRF(*own) for name, own in zip(self.metrics, figures, strict=True)},
            counts={
                name: Counts(*map(int, own)) for name, own in zip(self.counts, sums, strict=True)
            },
            predicted=predicted,
            hallucinated=hallucinated,
            masked_text=left,
            weighted_protection=weighted,
        )


def _number(figure: float) -> float | None:
    return None if isnan(figure) else figure
