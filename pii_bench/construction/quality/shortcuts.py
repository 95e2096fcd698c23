"""Trivial systems for `query-related` that choose among the gold entities.

Their scores say how much of the task can be had without understanding.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Final, Protocol

from pii_bench.scorer import macro, score_query_related
from pii_bench.systems.relevance.keywords import KEYWORDS
from pii_bench.taxonomy import PiiType

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

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


@dataclass(frozen=True, slots=True)
class Question:
    """What a system sees of a sample, and what it should choose.

    Attributes:
        choices: E without PER, which is never related (benchmark, "How a sample is made", 4).
        gold: texts of E_q.
    """

    query: str
    choices: tuple[Choice, ...]
    gold: frozenset[str]


class Shortcut(Protocol):
    """A trivial system."""

    @property
    def name(self) -> str:
        """As reports write it."""

    def fit(self, train: Sequence[Question], dev: Sequence[Question]) -> None:
        """Learn from train, and settle what is left on dev."""

    def predict(self, query: str, choices: Sequence[Choice]) -> list[str]:
        """Texts of the choices that the query is taken to need."""


def questions(samples: Iterable[Sample]) -> list[Question]:
    """The questions of samples; a sample without a query has none."""
    return [
        Question(
            query=sample.query,
            choices=tuple(
                Choice(entity.text, entity.category or entity.type, place)
                for place, subject in enumerate(sample.subjects)
                for entity in subject.entities
                if entity.type != PiiType.PER
            ),
            gold=frozenset(need.text for need in sample.related),
        )
        for sample in samples
        if sample.query is not None
    ]


def macro_f1(asked: Iterable[Question], predictions: Iterable[Sequence[str]]) -> float:
    """Exact F1 of `query-related`, the mean over the questions; 0 for none.

    Raises:
        ValueError: there is not one prediction per question.
    """
    scores = [
        score_query_related(predicted, question.gold).exact
        for question, predicted in zip(asked, predictions, strict=True)
    ]
    mean = macro(scores)
    return mean.f1 if mean else 0.0


@dataclass(frozen=True, slots=True)
class AllEntities:
    """Chooses all."""

    name: str = "all entities"

    def fit(self, train: Sequence[Question], dev: Sequence[Question]) -> None:
        """Nothing to learn."""

    def predict(self, query: str, choices: Sequence[Choice]) -> list[str]:  # noqa: ARG002
        """All of them."""
        return [choice.text for choice in choices]


@dataclass(slots=True)
class RandomChoice:
    """Chooses at random, as many as train needs on average.

    Attributes:
        size: how many, the mean size of E_q in train, rounded.
    """

    name: str = "random"
    size: int = 1

    def fit(self, train: Sequence[Question], dev: Sequence[Question]) -> None:  # noqa: ARG002
        """Learn the size."""
        if train:
            self.size = round(sum(len(question.gold) for question in train) / len(train))

    def predict(self, query: str, choices: Sequence[Choice]) -> list[str]:
        """A draw that depends on the query alone, not on those before it."""
        random = Random(f"{_SEED}:{query}")
        return [choice.text for choice in random.sample(choices, min(self.size, len(choices)))]


@dataclass(frozen=True, slots=True)
class KeywordRules:
    """Chooses the entities of categories that have a keyword in the query.

    Where no keyword stands it chooses all: E_q is never empty, so this can only add to its
    score.
    """

    name: str = "keyword rules from category names"

    def fit(self, train: Sequence[Question], dev: Sequence[Question]) -> None:
        """Nothing to learn."""

    def predict(self, query: str, choices: Sequence[Choice]) -> list[str]:
        """Those whose keywords stand there as whole words, with or without a plural s."""
        met = {name for name in {choice.category for choice in choices} if _mentions(query, name)}
        return [choice.text for choice in choices if not met or choice.category in met]


def _mentions(query: str, category: str) -> bool:
    words = "|".join(map(re.escape, KEYWORDS.get(category, (category,))))
    return re.search(rf"\b(?:{words})s?\b", query, re.IGNORECASE) is not None
