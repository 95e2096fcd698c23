"""A world small enough to know by heart: pools and people for tests of the construction."""

from __future__ import annotations

from typing import TYPE_CHECKING

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

if TYPE_CHECKING:
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


def person(*facts: tuple[str, str], subject: str = "A", pronoun: str = "she") -> Profile:
    """A person in Lund; "Date: job-start" is a category with its facet."""
    return Profile(subject, pronoun, HOME, tuple(fact(*each) for each in facts))


def fact(name: str, value: str) -> Fact:
    category, _, facet = name.partition(": ")
    return Fact(category, facet, value)


def split_pools() -> dict[Split, Pools]:
    return {"test": load_pools("test"), "train": load_pools("train")}
