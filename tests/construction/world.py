"""A world small enough to know by heart: pools, banks and people for tests of the construction."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from pii_bench.construction.bank import Bank
from pii_bench.construction.grammar import Banks, Dealer
from pii_bench.construction.markup import SHE, Person
from pii_bench.construction.people import Fact, Place, Profile
from pii_bench.construction.pools import (
    City,
    Country,
    NameCulture,
    Occupation,
    Pools,
    Schooling,
    load_pools,
)
from pii_bench.construction.sentences import Writer

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pii_bench.construction.people import Mention
    from pii_bench.construction.pools import Split

POOLS = Pools(
    split="test",
    countries={
        "Sweden": Country(
            name="Sweden",
            nationality="Swedish",
            phone="+46",
            currency="SEK {}",
            per_usd=10.0,
            locales=("sv_SE",),
            agencies=("Skatteverket", "Land Registry"),
            parties=("Centre Party",),
            streets=("Storgatan {n}",),
            cities={"Lund": City("Lund", ("Kungshuset",), ("Lund University",))},
        )
    },
    cultures={
        "japanese": NameCulture({"she": ("Yuka",), "he": ("Goro",), "they": ("Akira",)}, ("Ueno",))
    },
    occupations={
        "porter": Occupation("porter", education=1, low=1000, high=2000, age=18),
        "surgeon": Occupation("surgeon", education=5, low=8000, high=12000, age=30),
    },
    education_levels={
        "secondary school": Schooling("secondary school", rank=1, age=18),
        "bachelor's degree": Schooling("bachelor's degree", rank=3, age=21),
        "doctorate": Schooling("doctorate", rank=5, age=26),
    },
    degrees={"BSc in Geology": Schooling("BSc in Geology", rank=3, age=21)},
    genders={"woman": "she", "man": "he"},
    lists={},
)

HOME = Place("Sweden", "Lund")


def person(*facts: tuple[str, str], subject: str = "A", voice: Person = SHE) -> Profile:
    """A person in Lund; "Date: job-start" is a category with its facet."""
    return Profile(subject, voice, HOME, tuple(fact(*each) for each in facts))


def fact(name: str, value: str) -> Fact:
    category, _, facet = name.partition(": ")
    return Fact(category, facet, value)


def bank(sections: Mapping[str, Sequence[str]], facet: str = "") -> Bank:
    return Bank({(facet, section): tuple(frames) for section, frames in sections.items()})


def writer(
    *,
    facts: Mapping[str, Bank] | None = None,
    registers: Mapping[str, Bank] | None = None,
    queries: Mapping[str, Bank] | None = None,
    joints: Bank | None = None,
) -> Writer:
    random = Random(1)
    banks = Banks(
        facts=facts or {},
        registers=registers or {},
        relations={},
        queries=queries or {},
        joints=joints or bank({}),
        distractors=bank(
            {"number": ["the board stood at ##."], "name": ["the poster shows Everest."]}
        ),
        distract=bank({}),
    )
    return Writer(banks, Dealer(random), random)


def read(pieces: Iterable[str | Mention]) -> str:
    """The text, its mentions in square brackets."""
    return "".join(p if isinstance(p, str) else f"[{p.fact.value}]" for p in pieces)


def split_pools() -> dict[Split, Pools]:
    return {"test": load_pools("test"), "train": load_pools("train")}
