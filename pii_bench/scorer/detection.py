"""Scores of `detection`: who is in the text, and what belongs to whom (spec, "Detection")."""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum
from typing import TYPE_CHECKING

from pii_bench.scorer import rouge_l
from pii_bench.scorer.counts import PERFECT, PRF, ZERO, Counts
from pii_bench.scorer.matching import Subject, match

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    RawSubjects = Sequence[Iterable[tuple[str, str]]]


@dataclass(frozen=True, slots=True)
class DetectionScore:
    """Scores of one sample.

    Attributes:
        strict: (text, type) pairs over the matched subjects (Strict-F1).
        entity: texts pooled over all subjects, types ignored (Ent-F1).
        entity_matched: texts over the matched subjects, types ignored.
        rouge_l: most similar texts of the same type over the matched subjects (RougeL-F).
        matching: M* as (predicted, gold) indices in the caller's lists, sorted by
            the predicted one. Every subject with entities of the shorter side is in it,
            also where the pair has nothing in common.
        strict_counts: pairs shared within M*, and all pairs of either side's subjects.
        entity_counts: the counts behind `entity`.
    """

    strict: PRF
    entity: PRF
    entity_matched: PRF
    rouge_l: PRF
    matching: tuple[tuple[int, int], ...]
    strict_counts: Counts
    entity_counts: Counts


def score_detection(predicted: RawSubjects | None, gold: RawSubjects) -> DetectionScore:
    """Compare predicted subjects with gold subjects.

    Subjects without entities are dropped first. No subjects on both sides: every
    score is 1. On one side only: 0.

    Args:
        predicted: one iterable of (text, type) per subject, or None for a sample
            without a prediction: every score is 0, also where gold is empty.
        gold: likewise, never None.

    Raises:
        PiiBenchError: an entity is no (text, type) pair.
    """
    golds = _with_entities(gold)
    predictions = _with_entities(predicted or ())
    predicted_subjects, gold_subjects = list(predictions.values()), list(golds.values())
    pairs = match(predicted_subjects, gold_subjects)
    matched = [(predicted_subjects[i], gold_subjects[j]) for i, j in pairs]

    pooled = Counts.of(_pool(predicted_subjects), _pool(gold_subjects))
    strict_counts = Counts(
        sum(len(p.entities & g.entities) for p, g in matched),
        sum(len(p.entities) for p in predicted_subjects),
        sum(len(g.entities) for g in gold_subjects),
    )

    def over_matching(value: Callable[[Subject, Subject], PRF]) -> PRF:
        if predicted is None:
            return ZERO
        return _mean([value(p, g) for p, g in matched], len(predicted_subjects), len(gold_subjects))

    predicted_indices, gold_indices = list(predictions), list(golds)
    return DetectionScore(
        strict=over_matching(lambda p, g: Counts.of(p.entities, g.entities).prf),
        entity=ZERO if predicted is None else pooled.prf,
        entity_matched=over_matching(lambda p, g: Counts.of(p.texts, g.texts).prf),
        rouge_l=over_matching(lambda p, g: rouge_l.score_entities(p.entities, g.entities)),
        matching=tuple((predicted_indices[i], gold_indices[j]) for i, j in pairs),
        strict_counts=strict_counts,
        entity_counts=pooled,
    )


def _with_entities(subjects: RawSubjects) -> dict[int, Subject]:
    """The subjects that have entities, by the caller's index."""
    made = ((index, Subject.of(entities)) for index, entities in enumerate(subjects))
    return {index: subject for index, subject in made if subject.entities}


def _pool(subjects: Iterable[Subject]) -> frozenset[str]:
    return frozenset[str]().union(*(subject.texts for subject in subjects))


def _mean(values: Sequence[PRF], predicted: int, gold: int) -> PRF:
    """Sums over M* divided by the subjects of the side; F1 by the larger side."""
    if not predicted and not gold:
        return PERFECT
    if not predicted or not gold:
        return ZERO
    # fsum: the order of the subjects must not reach the last bit.
    return PRF(
        precision=fsum(value.precision for value in values) / predicted,
        recall=fsum(value.recall for value in values) / gold,
        f1=fsum(value.f1 for value in values) / max(predicted, gold),
    )
