"""Trivial systems for `query-related` that choose among the gold entities.

Their scores say how much of the task can be had without understanding. PER entities are
never related (benchmark: step 4), so no system is offered them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Final, Protocol, Self

from pii_bench.quality.keywords import KEYWORDS
from pii_bench.scorer import macro, score_query_related
from pii_bench.taxonomy import PiiType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pii_bench.datasets.sample import Sample

_SEED: Final = 0


@dataclass(frozen=True, slots=True)
class Choice:
    """An entity that a system may choose.

    Attributes:
        text: as it stands in the description.
        category: of the taxonomy; the type in foreign data without one.
        subject: place of its subject among those of the sample, from 0.
    """

    text: str
    category: str
    subject: int


class Shortcut(Protocol):
    """A trivial system. It is given the query and the choices, never E_q or the description."""

    @property
    def name(self) -> str:
        """As reports write it."""

    def fit(self, train: Sequence[Sample], dev: Sequence[Sample]) -> Self:
        """Learn from one set, and settle what is left on another."""

    def predict(self, query: str, choices: Sequence[Choice]) -> list[str]:
        """Texts of the choices that the query is taken to need."""


def choices_of(sample: Sample) -> list[Choice]:
    """The entities of a sample that are not PER."""
    return [
        Choice(entity.text, entity.category or entity.type, place)
        for place, subject in enumerate(sample.subjects)
        for entity in subject.entities
        if entity.type != PiiType.PER
    ]


def macro_f1(
    samples: Iterable[Sample], predict: Callable[[str, Sequence[Choice]], Sequence[str]]
) -> float:
    """Exact F1 of `query-related`, the mean over the samples with a query; 0 without any."""
    mean = macro(
        [
            score_query_related(
                predict(sample.query, choices_of(sample)), [need.text for need in sample.related]
            ).exact
            for sample in samples
            if sample.query is not None
        ]
    )
    return mean.f1 if mean else 0.0


@dataclass(frozen=True, slots=True)
class AllEntities:
    """Chooses all."""

    name: str = "all entities"

    def fit(self, train: Sequence[Sample], dev: Sequence[Sample]) -> Self:  # noqa: ARG002
        """Nothing to learn."""
        return self

    def predict(self, query: str, choices: Sequence[Choice]) -> list[str]:  # noqa: ARG002
        """All of them."""
        return [choice.text for choice in choices]


@dataclass(slots=True)
class RandomChoice:
    """Chooses at random, as many as train needs on average.

    Attributes:
        size: mean size of E_q in train, rounded.
    """

    name: str = "random"
    size: int = 1

    def fit(self, train: Sequence[Sample], dev: Sequence[Sample]) -> Self:  # noqa: ARG002
        """Learn the size."""
        needs = [len(sample.related) for sample in train if sample.query is not None]
        if needs:
            self.size = round(sum(needs) / len(needs))
        return self

    def predict(self, query: str, choices: Sequence[Choice]) -> list[str]:
        """A draw that depends on the query alone, not on the samples before it."""
        # S311: no secret depends on it.
        drawn = Random(f"{_SEED}:{query}").sample(choices, min(self.size, len(choices)))  # noqa: S311
        return [choice.text for choice in drawn]


@dataclass(frozen=True, slots=True)
class KeywordRules:
    """Chooses the entities one of whose category's keywords stands in the query.

    Where none does it chooses all: E_q is never empty, so this can only add to its score.
    """

    name: str = "keyword rules from category names"

    def fit(self, train: Sequence[Sample], dev: Sequence[Sample]) -> Self:  # noqa: ARG002
        """Nothing to learn."""
        return self

    def predict(self, query: str, choices: Sequence[Choice]) -> list[str]:
        """Those whose keywords are met as whole words, with or without a plural s."""
        met = {name for name in {choice.category for choice in choices} if _mentions(query, name)}
        return [choice.text for choice in choices if not met or choice.category in met]


def _mentions(query: str, category: str) -> bool:
    words = "|".join(map(re.escape, KEYWORDS.get(category, (category,))))
    return re.search(rf"\b(?:{words})s?\b", query, re.IGNORECASE) is not None
