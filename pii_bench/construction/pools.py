"""Lists to draw from: values (`data/values`), names from Faker, and voices (`data/texts`)."""

from __future__ import annotations

import hashlib
import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Literal

from pii_bench.errors import MissingExtraError
from pii_bench.files import DATA

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

VALUES: Final = DATA / "values"
TEXTS: Final = DATA / "texts"

Split = Literal["test", "train"]

WRITERS: Final = ("own", "desk", "near")
"""Kinds of writers: a person of the text, a professional who deals with them, or someone close."""

# Pronoun to Faker's lists, of which the first that a locale has is used.
_FAKER_LISTS: Final[Mapping[str, tuple[str, ...]]] = {
    "she": ("first_names_female", "first_names_nonbinary", "first_names"),
    "he": ("first_names_male", "first_names_nonbinary", "first_names"),
    "they": ("first_names_nonbinary", "first_names"),
}
# Pronoun to the key of a culture's first names in `people.toml`.
_FIRST_NAMES: Final = {"she": "first_f", "he": "first_m", "they": "first_n"}
# One word, or two joined by a hyphen; Faker's lists also contain several words and remarks.
_WORD: Final = re.compile(r"[^\W\d_]+(-[^\W\d_]+)?")

_ABOUT_ONE_PERSON: Final = frozenset({"resume", "self-introduction", "profile", "reference-letter"})


@dataclass(frozen=True, slots=True)
class City:
    """A city or region with its landmarks and universities."""

    name: str
    landmarks: tuple[str, ...]
    universities: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Country:
    """A country with the values that depend on it.

    Attributes:
        phone: calling code, such as "+46".
        currency: format of an amount, with `{}` for the digits.
        per_usd: local units for one US dollar.
        locales: Faker's locales for its names; empty if it has none in Latin script.
        streets: addresses, with `{n}` for the number.
    """

    name: str
    nationality: str
    phone: str
    currency: str
    per_usd: float
    locales: tuple[str, ...]
    agencies: tuple[str, ...]
    parties: tuple[str, ...]
    streets: tuple[str, ...]
    cities: Mapping[str, City]


@dataclass(frozen=True, slots=True)
class Occupation:
    """An occupation with its minimum age and its gross monthly pay in US dollars, low to high.

    Attributes:
        education: minimum rank: 0 none, 1 school, 2 vocational, 3 bachelor, 4 master, 5 doctorate.
    """

    name: str
    education: int
    low: int
    high: int
    age: int


@dataclass(frozen=True, slots=True)
class Schooling:
    """An education level or a degree, with its rank and minimum age."""

    name: str
    rank: int
    age: int


@dataclass(frozen=True, slots=True)
class NameCulture:
    """Names of one culture: first names by pronoun, and family names."""

    first: Mapping[str, tuple[str, ...]]
    last: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Pools:
    """The values of one split.

    Attributes:
        genders: word to pronoun ("she", "he" or "they").
        lists: name of a plain list, such as "nicknames", to its values.
    """

    split: Split
    countries: Mapping[str, Country]
    cultures: Mapping[str, NameCulture]
    occupations: Mapping[str, Occupation]
    education_levels: Mapping[str, Schooling]
    degrees: Mapping[str, Schooling]
    genders: Mapping[str, str]
    lists: Mapping[str, tuple[str, ...]]

    @property
    def named_cultures(self) -> list[str]:
        """All cultures that have names: those of `cultures`, then countries with locales."""
        countries = [country.name for country in self.countries.values() if country.locales]
        return [*self.cultures, *countries]

    def names(self, culture: str, pronoun: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the first names and the family names of a culture, all single words."""
        if culture in self.cultures:
            return self.cultures[culture].first[pronoun], self.cultures[culture].last
        return _faker_names(self.countries[culture].locales, pronoun, self.split)


@cache
def load_pools(split: Split) -> Pools:
    """Read the values of a split."""
    people = read_values(VALUES / "people.toml")
    tables = read_values(VALUES / "pools.toml")
    countries = [_country(each, split) for each in read_values(VALUES / "places.toml")["country"]]
    lists: dict[str, tuple[str, ...]] = {}
    for name, values in {**tables["shared"], **tables[split]}.items():
        if all(isinstance(value, str) for value in values):
            lists[name] = tuple(values)
    for name in ("nicknames", "handle_stems"):
        lists[name] = tuple(people[name][split])
    return Pools(
        split=split,
        countries={country.name: country for country in countries if country.cities},
        cultures={name: _culture(record, split) for name, record in people["names"].items()},
        occupations={r["name"]: Occupation(**r) for r in tables[split]["occupations"]},
        education_levels={r["name"]: Schooling(**r) for r in tables[split]["education_levels"]},
        degrees={r["name"]: Schooling(**r) for r in tables[split]["degrees"]},
        genders={r["name"]: r["pronoun"] for r in tables["shared"]["genders"]},
        lists=lists,
    )


def _of_split(names: Iterable[str], split: Split) -> tuple[str, ...]:
    """Return the parts of names that belong to a split; about a third belongs to train.

    This depends on the name only, because lists of several cultures and pronouns contain the same
    names.
    """
    chosen: list[str] = []
    for name in names:
        is_train = hashlib.sha256(name.encode()).digest()[-1] % 3 == 0
        if is_train == (split == "train"):
            chosen.append(name)
    return tuple(chosen)


@cache
def _faker_names(
    locales: tuple[str, ...], pronoun: str, split: Split
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    first: set[str] = set()
    last: set[str] = set()
    for locale in locales:
        try:
            provider = import_module(f"faker.providers.person.{locale}").Provider
        except ModuleNotFoundError:
            raise MissingExtraError("Faker", "pip install -e '.[build]'") from None
        for name in _FAKER_LISTS[pronoun]:
            if names := getattr(provider, name, ()):
                first.update(names)
                break
        last.update(provider.last_names)
    return _single_words(first, split), _single_words(last, split)


def _single_words(names: set[str], split: Split) -> tuple[str, ...]:
    words = [
        name for name in names if _WORD.fullmatch(name) and name == name.title() and len(name) > 2
    ]
    return _of_split(sorted(words), split)


def _culture(record: dict[str, Any], split: Split) -> NameCulture:
    first = {pronoun: _of_split(record[key], split) for pronoun, key in _FIRST_NAMES.items()}
    return NameCulture(first, _of_split(record["last"], split))


def _country(record: dict[str, Any], split: Split) -> Country:
    return Country(
        name=record["name"],
        nationality=record["nationality"],
        phone=record["phone"],
        currency=record["currency"],
        per_usd=record["per_usd"],
        locales=tuple(record["locales"]),
        agencies=tuple(record["agencies"][split]),
        parties=tuple(record["parties"][split]),
        streets=tuple(record["streets"][split]),
        cities={
            city["name"]: City(city["name"], tuple(city["landmarks"]), tuple(city["universities"]))
            for city in record["city"]
            if city["split"] == split
        },
    )


def read_values(path: Path) -> dict[str, Any]:
    """Read a TOML file of values."""
    return tomllib.loads(path.read_text(encoding="utf-8"))


@dataclass(frozen=True, slots=True)
class Theme:
    """The theme of a text: professionals who deal with it, and categories typical of it."""

    desk: tuple[str, ...]
    facts: frozenset[str]


@dataclass(frozen=True, slots=True)
class Voices:
    """The lists from which the voice, theme and kind of a text are drawn.

    Attributes:
        people: kind of writer, "own" or "near", to possible writers; a theme lists those of "desk".
        devices: what they type on.
        manners: their mood, schooling or habit.
        domains: what queries are about.
        registers: kind of text to the kinds of writers who write it.
        themes: name to theme.
    """

    people: Mapping[str, tuple[str, ...]]
    devices: tuple[str, ...]
    manners: tuple[str, ...]
    domains: tuple[str, ...]
    registers: Mapping[str, tuple[str, ...]]
    themes: Mapping[str, Theme]

    def people_of(self, writer: str, theme: str) -> tuple[str, ...]:
        """Return the people of a kind of writer who may write about a theme."""
        return self.themes[theme].desk if writer == "desk" else self.people[writer]

    def registers_of(self, writer: str, people: int) -> tuple[str, ...]:
        """Return the kinds of text that a kind of writer writes about one person or two."""
        return tuple(
            name
            for name, writers in self.registers.items()
            if writer in writers and (people == 1 or name not in _ABOUT_ONE_PERSON)
        )


@cache
def load_voices() -> Voices:
    """Read the voices, themes, kinds of text and domains of queries."""
    values = read_values(TEXTS / "voices.toml")
    return Voices(
        people={writer: tuple(values[writer]) for writer in ("own", "near")},
        devices=tuple(values["on"]),
        manners=tuple(values["manner"]),
        domains=tuple(values["domains"]),
        registers={name: tuple(writers) for name, writers in values["registers"].items()},
        themes={
            name: Theme(tuple(theme["desk"]), frozenset(theme["facts"]))
            for name, theme in values["themes"].items()
        },
    )
