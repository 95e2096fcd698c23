"""The people of a description, and their facts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pii_bench.taxonomy import TYPE_OF_CATEGORY, PiiType

if TYPE_CHECKING:
    from pii_bench.construction.values import Draw


@dataclass(frozen=True, slots=True)
class Place:
    """Where somebody lives: a country of the pools, and one of its cities."""

    country: str
    city: str


@dataclass(frozen=True, slots=True)
class Fact:
    """One entity before it is written into a text.

    Attributes:
        category: one of the 55.
        facet: what the fact is about, where the category alone does not say
            ("job-start" for a date); "" elsewhere.
        value: the text of the entity.
    """

    category: str
    facet: str
    value: str


@dataclass(frozen=True, slots=True)
class Profile:
    """A person of a description.

    Attributes:
        id: of the subject in the sample, "A" or "B".
        pronoun: `she`, `he` or `they`.
        home: where they live, whether or not the text says so.
        facts: categories differ; exactly one is of type PER.
        draw: what the values were drawn from; further ones can be.
    """

    id: str
    pronoun: str
    home: Place
    facts: tuple[Fact, ...]
    draw: Draw | None = field(default=None, compare=False, repr=False)

    @property
    def name(self) -> Fact:
        """The fact of type PER."""
        return next(fact for fact in self.facts if _is_name(fact))

    @property
    def others(self) -> tuple[Fact, ...]:
        """All facts but the name."""
        return tuple(fact for fact in self.facts if not _is_name(fact))

    def fact(self, category: str) -> Fact | None:
        """The fact of a category, None where there is none."""
        return next((fact for fact in self.facts if fact.category == category), None)


def _is_name(fact: Fact) -> bool:
    return TYPE_OF_CATEGORY[fact.category] is PiiType.PER
