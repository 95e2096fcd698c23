"""Scores of sets of texts: `query-related` and `masking` (spec, "Masking")."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pii_bench.scorer import rouge_l
from pii_bench.scorer.counts import PRF, ZERO, Counts
from pii_bench.scorer.text import text_set

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True)
class QueryRelatedScore:
    """Scores of one sample.

    Attributes:
        exact: over equal texts.
        rouge_l: over most similar texts (RougeL-F).
        counts: the counts behind `exact`.
    """

    exact: PRF
    rouge_l: PRF
    counts: Counts


@dataclass(frozen=True, slots=True)
class MaskingScore:
    """Scores of one sample, over the texts that are masked.

    Attributes:
        exact: over equal texts.
        rouge_l: over most similar texts (RougeL-F).
        counts: the counts behind `exact`.
    """

    exact: PRF
    rouge_l: PRF
    counts: Counts


def score_query_related(predicted: Iterable[str] | None, gold: Iterable[str]) -> QueryRelatedScore:
    """Compare the texts that a query is said to need with those that it needs.

    Args:
        predicted: texts, or None for a sample without a prediction: every score
            is 0, also where gold is empty.
        gold: texts.

    Raises:
        PiiBenchError: a side is one string.
    """
    return QueryRelatedScore(
        *_compare(None if predicted is None else text_set(predicted), text_set(gold))
    )


def score_masking(
    predicted_entities: Iterable[str] | None,
    predicted_related: Iterable[str] | None,
    gold_entities: Iterable[str],
    gold_related: Iterable[str],
) -> MaskingScore:
    """Compare what a system masks with what should be: entities that the query does not need.

    Args:
        predicted_entities: texts of E as predicted, or None for no prediction.
        predicted_related: texts of the related entities as predicted, or None for no prediction.
            Where either is None every score is 0, also where nothing should be masked.
        gold_entities: texts of E.
        gold_related: texts of the related entities.

    Raises:
        PiiBenchError: an argument is one string.
    """
    masked = None
    if predicted_entities is not None and predicted_related is not None:
        masked = text_set(predicted_entities) - text_set(predicted_related)
    return MaskingScore(*_compare(masked, text_set(gold_entities) - text_set(gold_related)))


def _compare(predicted: frozenset[str] | None, gold: frozenset[str]) -> tuple[PRF, PRF, Counts]:
    if predicted is None:
        return ZERO, ZERO, Counts(gold=len(gold))
    counts = Counts.of(predicted, gold)
    return counts.prf, rouge_l.score_texts(predicted, gold), counts
