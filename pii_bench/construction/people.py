"""The people of a description: their facts, and their names."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Final

from pii_bench.construction.pools import in_split
from pii_bench.errors import MissingExtraError
from pii_bench.taxonomy import TYPE_OF_CATEGORY, PiiType

if TYPE_CHECKING:
    from collections.abc import Mapping
    from random import Random

    from pii_bench.construction.pools import Pools, Split
    from pii_bench.construction.values import Draw


_PRONOUN_LISTS: Final[Mapping[str, tuple[str, ...]]] = {
    "she": ("first_names_female", "first_names_nonbinary", "first_names"),
    "he": ("first_names_male", "first_names_nonbinary", "first_names"),
    "they": ("first_names_nonbinary", "first_names"),
}


# One word, or two joined by a hyphen; Faker's lists also hold joined words and remarks.
_WORD: Final = re.compile(r"[^\W\d_]+(-[^\W\d_]+)?")


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


@dataclass
class Names:
    """Draws full names of a split; the lists of a locale are read once."""

    pools: Pools
    _lists: dict[tuple[str, str], tuple[list[str], list[str]]] = field(default_factory=dict)

    @property
    def cultures(self) -> list[str]:
        """Every culture that names can be of: hand-made pools, then countries with locales."""
        countries = [c.name for c in self.pools.countries.values() if c.locales]
        return [*self.pools.cultures, *countries]

    def full_name(self, random: Random, culture: str, pronoun: str) -> str:
        """First name, space, last name, each a single word (taxonomy)."""
        first, last = self._of(culture, pronoun)
        return f"{random.choice(first)} {random.choice(last)}"

    def _of(self, culture: str, pronoun: str) -> tuple[list[str], list[str]]:
        key = (culture, pronoun)
        if key not in self._lists:
            if culture in self.pools.cultures:
                own = self.pools.cultures[culture]
                self._lists[key] = list(own.first[pronoun]), list(own.last)
            else:
                locales = self.pools.countries[culture].locales
                self._lists[key] = _of_faker(locales, pronoun, self.pools.split)
        return self._lists[key]


def _of_faker(locales: tuple[str, ...], pronoun: str, split: Split) -> tuple[list[str], list[str]]:
    first: set[str] = set()
    last: set[str] = set()
    for locale in locales:
        try:
            provider = import_module(f"faker.providers.person.{locale}").Provider
        except ModuleNotFoundError:
            raise MissingExtraError("Faker", "pip install 'pii-bench[build]'") from None
        for name in _PRONOUN_LISTS[pronoun]:
            if names := getattr(provider, name, None):
                first |= set(names)
                break
        last |= set(provider.last_names)
    return _half(first, split), _half(last, split)


def _half(names: set[str], split: Split) -> list[str]:
    # Sorted, since sets have no order.
    return sorted(
        name
        for name in names
        if _WORD.fullmatch(name)
        and name == name.title()
        and len(name) > 2
        and in_split(name, split)
    )
