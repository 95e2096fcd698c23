"""Privacy P, utility U and their balance B: of samples, their means, and the paper's figures.

P = 1 - sum C(e, T_m) / sum C(e, T_o) over the distinct entity texts e, where C counts
occurrences in the masked text T_m and the original text T_o.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from pii_bench.ranking.external import PUBLISHED, read_published
from pii_bench.ranking.rows import Source
from pii_bench.scorer.locate import Locator, Strictness, locator_of, overlap, reading

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pii_bench.analysis.utility.chats import Ratings
    from pii_bench.scorer.locate import Span
    from pii_bench.systems.relevance.embedding import Encoder


class Missing(StrEnum):
    """The reason why a sample has no utility. A missing utility never counts as 0."""

    NO_MASKING = "no_masking"
    """The system that masks failed, so there is no masked text."""

    NO_ANSWER = "no_answer"
    """There is no answer to the masked or to the unmasked text."""

    NO_VERDICT = "no_verdict"
    """The judge was not asked, or its call failed."""

    UNPARSED = "unparsed"
    """The judge's reply has no ratings in one order or both."""


@dataclass(frozen=True, slots=True)
class SampleFigures:
    """The figures of one sample under one condition, by one measure of utility.

    Attributes:
        privacy: 0 to 1; None without a masked text or if the sample has no PII.
        utility: 0 to 1; None if missing.
        ratings: those that the utility follows from, if a judge gave them.
    """

    id: str
    privacy: float | None
    utility: float | None
    missing: Missing | None = None
    ratings: Ratings | None = None

    def balanced(self, weight: float) -> float | None:
        """Return B = weight * P + (1 - weight) * U; None if P or U is missing."""
        if self.privacy is None or self.utility is None:
            return None
        return weight * self.privacy + (1 - weight) * self.utility


@dataclass(frozen=True, slots=True)
class Mean:
    """The mean over the samples that have a figure; None if no sample has one."""

    value: float | None
    samples: int | None = None

    @classmethod
    def of(cls, values: Iterable[float | None]) -> Mean:
        """Return the mean of the values that are not None."""
        known = [value for value in values if value is not None]
        return cls(math.fsum(known) / len(known) if known else None, len(known))


@dataclass(frozen=True, slots=True)
class Means:
    """Mean figures over samples.

    Attributes:
        missing: number of samples without utility, by reason.
        ratings: a judge's mean ratings, masked and unmasked; None if nothing is rated.
    """

    privacy: Mean
    utility: Mean
    balanced: Mean
    missing: Mapping[Missing, int] = field(default_factory=dict)
    ratings: tuple[float, float] | None = None

    @classmethod
    def of(cls, figures: Sequence[SampleFigures], weight: float) -> Means:
        """Return the means; that of B is over the samples that have both P and U."""
        rated = [each.ratings for each in figures if each.ratings is not None]
        masked = Mean.of(ratings.masked for ratings in rated).value
        unmasked = Mean.of(ratings.unmasked for ratings in rated).value
        return cls(
            privacy=Mean.of(each.privacy for each in figures),
            utility=Mean.of(each.utility for each in figures),
            balanced=Mean.of(each.balanced(weight) for each in figures),
            missing=Counter(each.missing for each in figures if each.missing is not None),
            ratings=None if masked is None or unmasked is None else (masked, unmasked),
        )


@dataclass(frozen=True, slots=True)
class UtilityRow:
    """The figures of one condition, answerer, dataset and measure of utility.

    Attributes:
        condition: what was masked; see `pii_bench.analysis.utility.stored`.
        oracle: whether masking uses gold.
        measure: how utility is measured, such as `judge openai/gpt-4o`.
        samples: number of samples with a query; None for published figures.
        asked: number of those that the answerer was asked about; None for published figures.
        weight: the weight of privacy in the balance; the default is the paper's.
        signature: the line that reproduces the row; empty for published figures.
        figures: those of the samples that the means are over; empty for published figures.
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
    weight: float = 0.5
    signature: str = ""
    note: str = ""
    figures: tuple[SampleFigures, ...] = ()

    @property
    def complete(self) -> bool:
        """True if every sample was asked about and has a utility."""
        return self.samples is not None and self.means.utility.samples == self.samples


def similarity(encoder: Encoder, masked: str, unmasked: str) -> float:
    """Return the cosine of two embedded answers (not blank), clipped to 0 to 1.

    Below 0, answers are as useless as unrelated ones. Rounding can exceed 1.
    """
    if masked == unmasked:
        return 1.0
    a, b = encoder.embed([masked, unmasked])
    return min(1.0, max(0.0, float(a @ b)))


def privacy(entities: Iterable[str], original: str, masked: Sequence[Span]) -> float | None:
    """Return P of a masked text, from 0 (nothing is masked) to 1.

    An entity occurs where it can be read in the original (`Strictness.READABLE`): an age of
    `32` does not occur in `1932`. An occurrence remains if none of its characters is masked.
    Overlapping entities count separately: `Acme Bank` contains an `Acme` too.

    Args:
        entities: texts; spellings of one value count once, blank ones never.
        original: T_o.
        masked: the spans of T_o that are masked in T_m.

    Returns:
        None if no entity can be read in the original.
    """
    locator = locator_of(original)
    distinct = {reading(entity): entity for entity in entities}
    occurrences = [span for entity in distinct.values() for span in locator.spans(entity)]
    remaining = sum(not overlap([span], masked) for span in occurrences)
    return 1 - remaining / len(occurrences) if occurrences else None


def privacy_of_rewriting(entities: Iterable[str], original: str, rewritten: str) -> float | None:
    """Return P of a rewritten text, as `privacy` does.

    An entity remains where the text states it in any form (`Strictness.RESTATED`). P is 0 if
    entities occur more often than in the original.
    """
    before, after = locator_of(original), Locator(rewritten)
    distinct = {reading(entity): entity for entity in entities}.values()
    occurrences = sum(len(before.spans(entity)) for entity in distinct)
    if not occurrences:
        return None
    remaining = sum(len(after.spans(entity, Strictness.RESTATED)) for entity in distinct)
    return max(0.0, 1 - remaining / occurrences)


def published_figures() -> list[UtilityRow]:
    """Return one row per condition of the paper, in order; raises as `read_published`."""
    rows = []
    metrics = ("privacy", "utility", "balanced")
    for condition, figures in read_published(PUBLISHED, {"privacy_utility"}, metrics).items():
        _, dataset, answerer, masking, table = condition
        values = {metric: value for metric, value, _ in figures}
        rows.append(
            UtilityRow(
                source=Source.PUBLISHED,
                dataset=dataset,
                condition=masking,
                oracle=False,
                answerer=answerer,
                measure="not said",
                means=Means(
                    privacy=Mean(values.get("privacy")),
                    utility=Mean(values.get("utility")),
                    balanced=Mean(values.get("balanced")),
                ),
                note=f"paper, table {table}",
            )
        )
    return rows
