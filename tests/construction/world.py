"""Small pools and people for tests of the construction."""

from __future__ import annotations

from random import Random

from pii_bench.construction.people import Fact, Profile
from pii_bench.construction.pools import City, Country, NameCulture, Occupation, Pools, Schooling
from pii_bench.construction.values import Draw

LUND = City("Lund", ("Kungshuset",), ("Lund University",))
SWEDEN = Country(
    name="Sweden",
    nationality="Swedish",
    phone="+46",
    currency="SEK {}",
    per_usd=10.0,
    locales=("sv_SE",),
    agencies=("Skatteverket", "Land Registry"),
    parties=("Centre Party",),
    streets=("Storgatan {n}",),
    cities={"Lund": LUND},
)
POOLS = Pools(
    split="test",
    countries={"Sweden": SWEDEN},
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


def person(*facts: tuple[str, str], subject: str = "A", pronoun: str = "she") -> Profile:
    """Return a person in Lund with facts of (category, value), or ("Date: job-start", value)."""
    draw = Draw(Random(1), POOLS, SWEDEN, LUND, pronoun, "japanese", 3000.0)
    return Profile(subject, tuple(fact(name, value) for name, value in facts), draw)


def fact(name: str, value: str) -> Fact:
    category, _, facet = name.partition(": ")
    return Fact(category, facet, value)
