"""Precision, recall and F1 of samples and datasets, and the counts that they are made of."""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence
    from collections.abc import Set as AbstractSet


@dataclass(frozen=True, slots=True)
class PRF:
    """Precision, recall and F1, each from 0 to 1.

    `f1` is a field: a mean over samples is not the harmonic mean of its neighbours.
    """

    precision: float
    recall: float
    f1: float

    @classmethod
    def harmonic(cls, precision: float, recall: float) -> PRF:
        """With F1 = 2PR / (P + R), 0 where P + R = 0."""
        return cls(precision, recall, harmonic_mean(precision, recall))


def harmonic_mean(a: float, b: float) -> float:
    """2ab / (a + b) of two numbers of at least 0; 0 where both are 0."""
    return 2 * a * b / (a + b) if a + b else 0.0


ZERO = PRF(0.0, 0.0, 0.0)
PERFECT = PRF(1.0, 1.0, 1.0)


@dataclass(frozen=True, slots=True)
class Counts:
    """What a predicted set and a gold set share; sums over samples give micro figures.

    Attributes:
        matched: elements in both.
        predicted: elements predicted.
        gold: elements in gold.
    """

    matched: int = 0
    predicted: int = 0
    gold: int = 0

    @classmethod
    def of(cls, predicted: AbstractSet[Hashable], gold: AbstractSet[Hashable]) -> Counts:
        """Counts of two sets."""
        return cls(len(predicted & gold), len(predicted), len(gold))

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            self.matched + other.matched,
            self.predicted + other.predicted,
            self.gold + other.gold,
        )

    @property
    def empty(self) -> bool:
        """Whether both sides are empty: nothing to find and nothing found."""
        return not self.predicted and not self.gold

    @property
    def precision(self) -> float:
        """Matched of predicted; 1 where both sides are empty, 0 where only `predicted` is."""
        return self._share(self.predicted)

    @property
    def recall(self) -> float:
        """Matched of gold; 1 where both sides are empty, 0 where only `gold` is."""
        return self._share(self.gold)

    @property
    def f1(self) -> float:
        """Harmonic mean 2 * matched / (predicted + gold); 1 where both sides are empty."""
        return 1.0 if self.empty else 2 * self.matched / (self.predicted + self.gold)

    @property
    def prf(self) -> PRF:
        """The three as one value."""
        return PRF(self.precision, self.recall, self.f1)

    def _share(self, whole: int) -> float:
        if self.empty:
            return 1.0
        return self.matched / whole if whole else 0.0


def macro(scores: Sequence[PRF]) -> PRF | None:
    """The mean over samples, the headline figure.

    Args:
        scores: one per gold sample; a sample without a prediction counts with 0.

    Returns:
        The three means, or None for no samples: a mean of nothing is not 0.
    """
    if not scores:
        return None
    return PRF(
        precision=fsum(score.precision for score in scores) / len(scores),
        recall=fsum(score.recall for score in scores) / len(scores),
        f1=fsum(score.f1 for score in scores) / len(scores),
    )


def micro(counts: Iterable[Counts]) -> PRF | None:
    """Counts summed over samples and divided once.

    Returns:
        The figures of the sum, or None where nothing was predicted and nothing was
        gold: counts do not tell an agreed empty set from a failure on one.
    """
    total = sum(counts, start=Counts())
    return None if total.empty else total.prf
