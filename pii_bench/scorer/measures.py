"""Precision, recall and F1 of sets, exact and by similar texts (RougeL-F).

Also the scores of the tasks `query-related` and `masking`, which compare sets of texts.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from math import fsum
from typing import TYPE_CHECKING

from rapidfuzz.distance import LCSseq

from pii_bench.scorer.text import text_set, tokens

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence
    from collections.abc import Set as AbstractSet


@dataclass(frozen=True, slots=True)
class PRF:
    """Precision, recall and F1, each from 0 to 1.

    `f1` is a field because a mean over samples is not the harmonic mean of precision and recall.
    """

    precision: float
    recall: float
    f1: float

    @classmethod
    def harmonic(cls, precision: float, recall: float) -> PRF:
        """Compute F1 = 2PR / (P + R), or 0 if P + R = 0."""
        return cls(precision, recall, harmonic_mean(precision, recall))


def harmonic_mean(a: float, b: float) -> float:
    """Return 2ab / (a + b) of two non-negative numbers, or 0 if both are 0."""
    return 2 * a * b / (a + b) if a + b else 0.0


ZERO = PRF(0.0, 0.0, 0.0)
PERFECT = PRF(1.0, 1.0, 1.0)


@dataclass(frozen=True, slots=True)
class Counts:
    """Sizes of a predicted set, a gold set and their intersection; sums give micro averages."""

    matched: int = 0
    predicted: int = 0
    gold: int = 0

    @classmethod
    def of(cls, predicted: AbstractSet[Hashable], gold: AbstractSet[Hashable]) -> Counts:
        """Count two sets."""
        return cls(len(predicted & gold), len(predicted), len(gold))

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            self.matched + other.matched,
            self.predicted + other.predicted,
            self.gold + other.gold,
        )

    @property
    def empty(self) -> bool:
        """Whether both sets are empty."""
        return not self.predicted and not self.gold

    @property
    def prf(self) -> PRF:
        """Precision, recall and F1: all 1 if both sets are empty, all 0 if only one is."""
        if self.empty:
            return PERFECT
        return PRF(
            precision=self.matched / self.predicted if self.predicted else 0.0,
            recall=self.matched / self.gold if self.gold else 0.0,
            f1=2 * self.matched / (self.predicted + self.gold),
        )


def macro(scores: Sequence[PRF]) -> PRF | None:
    """Return the mean of scores; None if there are none.

    A sample without a prediction must be included as zeros.
    """
    if not scores:
        return None
    return PRF(
        precision=fsum(score.precision for score in scores) / len(scores),
        recall=fsum(score.recall for score in scores) / len(scores),
        f1=fsum(score.f1 for score in scores) / len(scores),
    )


def micro(counts: Iterable[Counts]) -> PRF | None:
    """Sum counts over samples and divide once.

    None if nothing was predicted and nothing was gold: counts cannot tell an agreed empty set
    from a failure.
    """
    total = sum(counts, start=Counts())
    return None if total.empty else total.prf


def similarity(a: str, b: str) -> float:
    """Return the F-measure, 0 to 1, of the longest common subsequence of two texts' tokens.

    With n and m tokens and a subsequence of length l, F = 2l / (n + m). For ASCII texts this is
    the `rougeL` fmeasure of the package rouge-score without stemming, except that equal texts
    without any token have 1. Texts are normalised.
    """
    if a == b:
        return 1.0
    a_tokens, b_tokens = tokens(a), tokens(b)
    if not a_tokens or not b_tokens:
        return 0.0
    common = LCSseq.similarity(a_tokens, b_tokens)
    return 2 * common / (len(a_tokens) + len(b_tokens))


def rouge_l_of_entities(
    predicted: AbstractSet[tuple[str, str]], gold: AbstractSet[tuple[str, str]]
) -> PRF:
    """Return the mean best similarity from each side: P over predicted, R over gold.

    Entities are (normalised text, type); texts of different types have similarity 0. The result is
    1 if both sets are empty, 0 if one is.
    """
    if not predicted and not gold:
        return PERFECT
    if not predicted or not gold:
        return ZERO
    return PRF.harmonic(_mean_best(predicted, gold), _mean_best(gold, predicted))


def _mean_best(
    entities: AbstractSet[tuple[str, str]], others: AbstractSet[tuple[str, str]]
) -> float:
    texts: defaultdict[str, set[str]] = defaultdict(set)
    for text, kind in others:
        texts[kind].add(text)
    # Most texts are in both, so that no other needs to be compared.
    best = [
        1.0
        if text in texts[kind]
        else max((similarity(text, other) for other in texts[kind]), default=0.0)
        for text, kind in entities
    ]
    # fsum does not depend on the order of the set.
    return fsum(best) / len(best)


@dataclass(frozen=True, slots=True)
class TextsScore:
    """Scores of one sample over sets of texts: of equal ones, and of most similar ones (RougeL-F).

    `counts` are those behind `exact`.
    """

    exact: PRF
    rouge_l: PRF
    counts: Counts


def score_query_related(predicted: Iterable[str] | None, gold: Iterable[str]) -> TextsScore:
    """Compare the predicted texts of the related entities with the gold ones.

    None means that the sample has no prediction: every score is 0, even if gold is empty.

    Raises:
        PiiBenchError: an argument is one string.
    """
    return _compare(None if predicted is None else text_set(predicted), text_set(gold))


def score_masking(
    predicted_entities: Iterable[str] | None,
    predicted_related: Iterable[str] | None,
    gold_entities: Iterable[str],
    gold_related: Iterable[str],
) -> TextsScore:
    """Compare the texts that a system masks with those that it should mask.

    These are the texts of all entities without those of the related ones. None means a
    missing prediction: every score is 0, even if nothing should be masked.

    Raises:
        PiiBenchError: an argument is one string.
    """
    masked = None
    if predicted_entities is not None and predicted_related is not None:
        masked = text_set(predicted_entities) - text_set(predicted_related)
    return _compare(masked, text_set(gold_entities) - text_set(gold_related))


def _compare(predicted: frozenset[str] | None, gold: frozenset[str]) -> TextsScore:
    if predicted is None:
        return TextsScore(ZERO, ZERO, Counts(gold=len(gold)))
    counts = Counts.of(predicted, gold)
    rouge_l = rouge_l_of_entities({(text, "") for text in predicted}, {(text, "") for text in gold})
    return TextsScore(counts.prf, rouge_l, counts)
