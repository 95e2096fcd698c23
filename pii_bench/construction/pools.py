"""Pools to draw from: values (`data/values`), names from Faker, and voices (`data/texts`)."""

from __future__ import annotations

import hashlib
import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Literal

from pii_bench.errors import InputFileError, MissingExtraError
from pii_bench.files import DATA

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

VALUES: Final = DATA / "values"
TEXTS: Final = DATA / "texts"

Split = Literal["test", "train"]

WRITERS: Final = ("own", "desk", "near")
"""The person of the text, a person who deals with them at work, a relative or friend."""

_FAKER_LISTS: Final[Mapping[str, tuple[str, ...]]] = {
    "she": ("first_names_female", "first_names_nonbinary", "first_names"),
    "he": ("first_names_male", "first_names_nonbinary", "first_names"),
    "they": ("first_names_nonbinary", "first_names"),
}
# One word, or two joined by a hyphen; Faker's lists also hold joined words and remarks.
_WORD: Final = re.compile(r"[^\W\d_]+(-[^\W\d_]+)?")

# A resume and a self-introduction have one person.
_OF_ONE: Final = frozenset({"resume", "self-introduction", "profile", "reference-letter"})


@dataclass(frozen=True, slots=True)
class City:
    """A city or region with its dependent values."""

    name: str
    landmarks: tuple[str, ...]
    universities: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Country:
    """A country with its dependent values.

    Attributes:
        phone: calling code with its plus.
        currency: an amount's form, `{}` where the grouped digits go.
        per_usd: local units for one US dollar.
        locales: Faker's locales for its names; empty where it has none in Latin script.
        streets: addresses, `{n}` where the number goes.
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
    """An occupation with its minimum requirements and pay.

    Attributes:
        education: least rank: 0 none, 1 school, 2 vocational, 3 bachelor, 4 master, 5 doctorate.
        low: gross monthly pay in US dollars.
        high: gross monthly pay in US dollars.
        age: the least.
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
    """The pools of one split.

    Attributes:
        lists: name of a plain list ("companies", "nicknames") to its values.
        genders: word to pronoun (`she`, `he`, `they`).
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
        """All cultures of names: hand-made pools, then countries with locales."""
        return [*self.cultures, *(c.name for c in self.countries.values() if c.locales)]

    def names(self, culture: str, pronoun: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return first and family names of a culture, each a single word (taxonomy).

        Raises:
            MissingExtraError: Faker is not installed.
        """
        if own := self.cultures.get(culture):
            return own.first[pronoun], own.last
        return _faker_names(self.countries[culture].locales, pronoun, self.split)


@cache
def load_pools(split: Split, folder: Path = VALUES) -> Pools:
    """Read the pools of a split.

    Raises:
        InputFileError: a file is absent or not of its format.
    """
    places = read_values(folder / "places.toml")
    people = read_values(folder / "people.toml")
    pools = read_values(folder / "pools.toml")
    own, shared = pools[split], pools.get("shared", {})
    return Pools(
        split=split,
        countries={
            country.name: country
            for record in places["country"]
            if (country := _country(record, split)).cities
        },
        cultures={
            name: NameCulture(
                first={
                    pronoun: _half(record[key], split)
                    for pronoun, key in (("she", "first_f"), ("he", "first_m"), ("they", "first_n"))
                },
                last=_half(record["last"], split),
            )
            for name, record in people["names"].items()
        },
        occupations={r["name"]: Occupation(**r) for r in own["occupations"]},
        education_levels={r["name"]: Schooling(**r) for r in own["education_levels"]},
        degrees={r["name"]: Schooling(**r) for r in own["degrees"]},
        genders={r["name"]: r["pronoun"] for r in shared["genders"]},
        lists={
            **{key: tuple(value) for key, value in shared.items() if _plain(value)},
            **{key: tuple(value) for key, value in own.items() if _plain(value)},
            **{key: tuple(people[key][split]) for key in ("nicknames", "handle_stems")},
        },
    )


def in_split(name: str, split: Split) -> bool:
    """Return True if a part of a name belongs to a split; about a third belongs to train.

    The name alone decides, since the lists of several cultures and pronouns hold the same one.
    """
    return (hashlib.sha256(name.encode()).digest()[-1] % 3 == 0) == (split == "train")


def _half(names: Iterable[str], split: Split) -> tuple[str, ...]:
    return tuple(name for name in names if in_split(name, split))


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
            raise MissingExtraError("Faker", "pip install 'pii-bench[build]'") from None
        lists = (getattr(provider, name, ()) for name in _FAKER_LISTS[pronoun])
        first.update(next(filter(None, lists)))
        last.update(provider.last_names)
    return _single_words(first, split), _single_words(last, split)


def _single_words(names: set[str], split: Split) -> tuple[str, ...]:
    # Sorted, since sets have no order.
    fit = sorted(n for n in names if _WORD.fullmatch(n) and n == n.title() and len(n) > 2)
    return _half(fit, split)


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


def _plain(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def read_values(path: Path) -> dict[str, Any]:
    """Read a file of values.

    Raises:
        InputFileError: it is absent or no TOML.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise InputFileError(path, f"no pool of values: {error}") from error


@dataclass(frozen=True, slots=True)
class Theme:
    """The theme of a text.

    Attributes:
        desk: who deals with such matters for a living.
        facts: categories that come up there.
    """

    desk: tuple[str, ...]
    facts: frozenset[str]


@dataclass(frozen=True, slots=True)
class Voices:
    """The lists that a commission draws from.

    Attributes:
        own: people who write about themselves; `near`, about a relative or friend.
        on: what they type on.
        manner: their mood, schooling or habit.
        domains: what queries are about.
        registers: kind of text to the kinds of writers that it has.
        themes: name to theme.
    """

    own: tuple[str, ...]
    near: tuple[str, ...]
    on: tuple[str, ...]
    manner: tuple[str, ...]
    domains: tuple[str, ...]
    registers: Mapping[str, tuple[str, ...]]
    themes: Mapping[str, Theme]

    def who(self, writer: str, theme: str) -> tuple[str, ...]:
        """Return the people of a kind of writer who may write about a theme."""
        if writer == "desk":
            return self.themes[theme].desk
        return self.own if writer == "own" else self.near

    def registers_of(self, writer: str, people: int) -> tuple[str, ...]:
        """Return the kinds of text that a kind of writer writes about one person or two."""
        return tuple(
            name
            for name, writers in self.registers.items()
            if writer in writers and (people == 1 or name not in _OF_ONE)
        )


@cache
def load_voices() -> Voices:
    """Read who types a text and how, kinds of text and domains of queries.

    Raises:
        InputFileError: the file is absent or no TOML.
    """
    found = read_values(TEXTS / "voices.toml")
    return Voices(
        **{key: tuple(found[key]) for key in ("own", "near", "on", "manner", "domains")},
        registers={name: tuple(writers) for name, writers in found["registers"].items()},
        themes={
            name: Theme(tuple(theme["desk"]), frozenset(theme["facts"]))
            for name, theme in found["themes"].items()
        },
    )
