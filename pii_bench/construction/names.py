"""Full names: Faker's locales, and hand-made pools for the cultures that it lacks."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Final

from pii_bench.construction.pools import in_split
from pii_bench.errors import MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from random import Random

    from pii_bench.construction.pools import Pools, Split

_PRONOUN_LISTS: Final[Mapping[str, tuple[str, ...]]] = {
    "she": ("first_names_female", "first_names_nonbinary", "first_names"),
    "he": ("first_names_male", "first_names_nonbinary", "first_names"),
    "they": ("first_names_nonbinary", "first_names"),
}


# One word, or two joined by a hyphen; Faker's lists also hold joined words and remarks.
_WORD: Final = re.compile(r"[^\W\d_]+(-[^\W\d_]+)?")


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
