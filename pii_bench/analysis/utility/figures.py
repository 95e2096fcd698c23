"""P, U and B of samples, and their means."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pii_bench.analysis.utility.responses import Ratings
    from pii_bench.ranking.source import Source
    from pii_bench.systems.relevance.embedding import Encoder

DEFAULT_WEIGHT: Final = 0.5
"""The paper's weight of privacy."""


class Missing(StrEnum):
    """Why a sample has no utility; never 0 in its place."""

    NO_MASKING = "no_masking"
    """The system that masks failed: there is no masked text."""

    NO_ANSWER = "no_answer"
    """There is no answer to the masked or to the unmasked text."""

    NO_VERDICT = "no_verdict"
    """The judge was not asked, or its call failed."""

    UNPARSED = "unparsed"
    """A verdict of the judge, in one order or both, holds no ratings."""


@dataclass(frozen=True, slots=True)
class SampleFigures:
    """One sample under one condition, by one measure of utility.

    Attributes:
        privacy: 0 to 1; None without a masked text, and where the sample has no PII.
        utility: 0 to 1; None where it is missing.
        missing: why.
        ratings: what the utility is made of, where a judge gave it.
    """

    id: str
    privacy: float | None
    utility: float | None
    missing: Missing | None = None
    ratings: Ratings | None = None

    def balanced(self, weight: float) -> float | None:
        """B = weight * P + (1 - weight) * U; None where either is."""
        if self.privacy is None or self.utility is None:
            return None
        return weight * self.privacy + (1 - weight) * self.utility


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean over the samples that have a figure; None over none."""

    value: float | None
    samples: int | None = None

    @classmethod
    def of(cls, values: Iterable[float | None]) -> Mean:
        """The mean of those that are not None."""
        known = [value for value in values if value is not None]
        return cls(math.fsum(known) / len(known) if known else None, len(known))


@dataclass(frozen=True, slots=True)
class Means:
    """The figures that follow from samples.

    Attributes:
        missing: how many samples have no utility, and why.
        ratings: a judge's mean ratings, masked and unmasked; None where nothing is rated.
    """

    privacy: Mean
    utility: Mean
    balanced: Mean
    missing: Mapping[Missing, int] = field(default_factory=dict)
    ratings: tuple[float, float] | None = None

    @classmethod
    def of(cls, figures: Sequence[SampleFigures], weight: float) -> Means:
        """Means over samples; that of B is over those that have both P and U."""
        rated = [each.ratings for each in figures if each.ratings is not None]
        return cls(
            privacy=Mean.of(each.privacy for each in figures),
            utility=Mean.of(each.utility for each in figures),
            balanced=Mean.of(each.balanced(weight) for each in figures),
            missing=Counter(each.missing for each in figures if each.missing is not None),
            ratings=(
                math.fsum(ratings.masked for ratings in rated) / len(rated),
                math.fsum(ratings.unmasked for ratings in rated) / len(rated),
            )
            if rated
            else None,
        )


@dataclass(frozen=True, slots=True)
class UtilityRow:
    """One condition, answerer, dataset and measure of utility.

    Attributes:
        condition: what was masked; see `pii_bench.analysis.utility.conditions`.
        oracle: whether gold told it.
        answerer: the model that answered.
        measure: what utility is measured by, such as `judge openai/gpt-4o`.
        samples: of the dataset, those with a query; None for published figures.
        asked: those of them that the answerer was asked about.
        weight: of privacy in the balance.
        signature: the line that reproduces the row; empty for published figures.
        note: what a reader must know about the figures.
    """

    source: Source
    dataset: str
    condition: str
    oracle: bool
    answerer: str
    measure: str
    means: Means
    samples: int | None = None
    asked: int | None = None
    weight: float = DEFAULT_WEIGHT
    signature: str = ""
    note: str = ""

    @property
    def complete(self) -> bool:
        """Whether every sample of the dataset was asked about and has a utility."""
        return self.samples is not None and self.means.utility.samples == self.samples


def similarity(encoder: Encoder, masked: str, unmasked: str) -> float:
    """The cosine of two embedded answers, clipped to 0 to 1.

    Answers that point away from each other are as useless as unrelated ones, and rounding
    passes 1.

    Args:
        encoder: gives vectors of length 1.
        masked: the answer to the masked text, not blank.
        unmasked: the answer to the text as it was, not blank.
    """
    if masked == unmasked:
        return 1.0
    one, other = encoder.embed([masked, unmasked])
    return min(1.0, max(0.0, float(one @ other)))
