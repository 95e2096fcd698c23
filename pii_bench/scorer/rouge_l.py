"""RougeL-F: texts that nearly agree (spec, "RougeL-F"; the paper's appendix on metrics)."""

from __future__ import annotations

from collections import defaultdict
from math import fsum
from typing import TYPE_CHECKING

from rapidfuzz.distance import LCSseq

from pii_bench.scorer.counts import PERFECT, PRF, ZERO
from pii_bench.scorer.text import tokens

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from collections.abc import Set as AbstractSet

    TextsByType = Mapping[str, AbstractSet[str]]


def similarity(a: str, b: str) -> float:
    """F-measure, 0 to 1, of the longest common subsequence of two normalised texts' tokens.

    With n and m tokens and a subsequence of length l, P = l/n and R = l/m, so
    F = 2l / (n + m). For ASCII texts it is the `rougeL` fmeasure of the package
    rouge-score (no stemming), except that equal texts without any token have 1.
    """
    if a == b:
        return 1.0
    a_tokens, b_tokens = tokens(a), tokens(b)
    if not a_tokens or not b_tokens:
        return 0.0
    common = LCSseq.similarity(a_tokens, b_tokens)
    return 2 * common / (len(a_tokens) + len(b_tokens))


def score_texts(predicted: AbstractSet[str], gold: AbstractSet[str]) -> PRF:
    """Mean best similarity from each side: P over predicted, R over gold.

    Both empty: 1. One empty: 0.

    Args:
        predicted: normalised texts.
        gold: normalised texts.
    """
    return _score({"": predicted} if predicted else {}, {"": gold} if gold else {})


def score_entities(
    predicted: AbstractSet[tuple[str, str]], gold: AbstractSet[tuple[str, str]]
) -> PRF:
    """As `score_texts`, where texts of different types have similarity 0.

    Args:
        predicted: normalised (text, type) pairs.
        gold: normalised (text, type) pairs.
    """
    return _score(_by_type(predicted), _by_type(gold))


def _by_type(entities: AbstractSet[tuple[str, str]]) -> TextsByType:
    texts: defaultdict[str, set[str]] = defaultdict(set)
    for text, kind in entities:
        texts[kind].add(text)
    return texts


def _score(predicted: TextsByType, gold: TextsByType) -> PRF:
    if not predicted and not gold:
        return PERFECT
    if not predicted or not gold:
        return ZERO
    return PRF.harmonic(_mean_best(predicted, gold), _mean_best(gold, predicted))


def _mean_best(texts: TextsByType, others: TextsByType) -> float:
    best = [
        _best(text, others.get(kind, frozenset()))
        for kind, of_kind in texts.items()
        for text in of_kind
    ]
    # fsum: a set has no order, and the last bit of a plain sum would follow it.
    return fsum(best) / len(best)


def _best(text: str, others: Collection[str]) -> float:
    if text in others:
        return 1.0
    return max((similarity(text, other) for other in others), default=0.0)
