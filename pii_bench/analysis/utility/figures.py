"""P, U and B of samples, their means, and the paper's figures as rows.

P = 1 - sum C(e, T_m) / sum C(e, T_o) over the distinct texts e of E, where C counts
occurrences in the masked and the original text.
"""

from __future__ import annotations

import csv
import math
from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from pii_bench.errors import InputFileError
from pii_bench.ranking.external import PUBLISHED
from pii_bench.ranking.rows import Source
from pii_bench.scorer.locate import Locator, Strictness, locator_of, overlap, reading

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from pii_bench.analysis.utility.chats import Ratings
    from pii_bench.scorer.locate import Span
    from pii_bench.systems.relevance.embedding import Encoder


DEFAULT_WEIGHT: Final = 0.5
"""The paper's weight of privacy."""

_TASK: Final = "privacy_utility"
_METRICS: Final = ("privacy", "utility", "balanced")
_MEASURE: Final = "not said"


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
        condition: what was masked; see `pii_bench.analysis.utility.stored`.
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


def privacy(entities: Iterable[str], original: str, masked: Sequence[Span]) -> float | None:
    """P of one text, from 0 (all is left) to 1.

    An occurrence is wherever an entity can be read in the original (`Strictness.READABLE`): an
    age of `32` is not in `1932`. It is left if none of its characters is masked; one that is
    masked in part is gone, as the formula has it. Where entities overlap, each counts by itself:
    `Acme Bank` holds an `Acme` too.

    Args:
        entities: texts of E; writings of one value count once, blank ones never.
        original: T_o.
        masked: what of it is masked in T_m.

    Returns:
        None where nothing of E can be read in the original.
    """
    locator = locator_of(original)
    distinct = {reading(entity): entity for entity in entities}
    occurrences = [span for entity in distinct.values() for span in locator.spans(entity)]
    left = sum(not overlap([span], masked) for span in occurrences)
    return 1 - left / len(occurrences) if occurrences else None


def privacy_of_rewriting(entities: Iterable[str], original: str, rewritten: str) -> float | None:
    """P of a text that was written anew, from 0 to 1.

    It still holds an entity where it tells it in any form (`Strictness.RESTATED`). A text that
    says an entity more often than the original has no less than 0.

    Args:
        entities: texts of E; writings of one value count once, blank ones never.
        original: T_o.
        rewritten: T_m.

    Returns:
        None where nothing of E can be read in the original.
    """
    before, after = locator_of(original), Locator(rewritten)
    distinct = {reading(entity): entity for entity in entities}.values()
    occurrences = sum(len(before.spans(entity)) for entity in distinct)
    if not occurrences:
        return None
    left = sum(len(after.spans(entity, Strictness.RESTATED)) for entity in distinct)
    return max(0.0, 1 - left / occurrences)


def published_figures(path: Path = PUBLISHED) -> list[UtilityRow]:
    """One row per condition of the paper, in the file's order.

    Raises:
        InputFileError: absent, or a figure that is no number between 0 and 1.
    """
    figures: dict[tuple[str, str, str, str], dict[str, float]] = {}
    try:
        with path.open(encoding="utf-8", newline="") as file:
            for record in csv.DictReader(file):
                if record["task"] != _TASK:
                    continue
                metric, value = record["metric"], float(record["value"])
                if metric not in _METRICS or not 0 <= value <= 1:
                    raise ValueError(f"{metric} = {value}")
                key = record["dataset"], record["model"], record["strategy"], record["table"]
                figures.setdefault(key, {})[metric] = value
    except (OSError, KeyError, ValueError) as error:
        raise InputFileError(path, f"no table of published figures: {error}") from error
    return [
        UtilityRow(
            source=Source.PUBLISHED,
            dataset=dataset,
            condition=condition,
            oracle=False,
            answerer=answerer,
            measure=_MEASURE,
            means=Means(
                privacy=Mean(values.get("privacy")),
                utility=Mean(values.get("utility")),
                balanced=Mean(values.get("balanced")),
            ),
            note=f"paper, table {table}",
        )
        for (dataset, answerer, condition, table), values in figures.items()
    ]
