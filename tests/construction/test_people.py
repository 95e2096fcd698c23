from __future__ import annotations

from collections import Counter
from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING

import pytest

from pii_bench.construction import people
from pii_bench.construction.people import Census, Unresolvable
from pii_bench.construction.pools import load_pools
from pii_bench.construction.rules import (
    RELATIONS,
    Relation,
    conflicts,
    relation_conflicts,
)
from pii_bench.construction.values import facets_of
from pii_bench.taxonomy import TYPE_OF_CATEGORY, PiiType

if TYPE_CHECKING:
    from pii_bench.construction.people import Profile

# So many facts that every rule has values to compare.
DRAWN = {"DEM": 8, "QUANTITY": 5, "DATETIME": 2, "LOC": 2, "ORG": 2, "CODE": 1}
TYPES = [PiiType(name) for name, count in DRAWN.items() for _ in range(count)]
EACH_RELATION = pytest.mark.parametrize("relation", RELATIONS.values(), ids=RELATIONS)


def census() -> Census:
    return Census(load_pools("test"), Random(1))


def singles(count: int, *, alias: bool = False) -> list[Profile]:
    people: list[Profile] = []
    source = census()
    while len(people) < count:
        with suppress(Unresolvable):
            people.append(source.single(TYPES, alias=alias))
    return people


def pairs(relation: Relation, count: int) -> list[tuple[Profile, Profile]]:
    drawn: list[tuple[Profile, Profile]] = []
    source = census()
    while len(drawn) < count:
        with suppress(Unresolvable):
            drawn.append(source.pair((TYPES, TYPES), relation, alias=False))
    return drawn


def types_of(profile: Profile) -> Counter[PiiType]:
    return Counter(TYPE_OF_CATEGORY[fact.category] for fact in profile.facts)


def test_a_person_has_a_name_the_requested_types_and_no_conflict() -> None:
    for profile in singles(40):
        assert types_of(profile) == Counter([PiiType.PER, *TYPES])
        assert len({fact.category for fact in profile.facts}) == len(profile.facts)
        assert all(fact.facet in facets_of(fact.category) for fact in profile.facts)
        assert conflicts(profile) == []


def test_a_person_whose_conflicts_remain_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(people, "conflicts", lambda _: [("A", "Age")])
    with pytest.raises(Unresolvable):
        census().single(TYPES, alias=False)


def test_only_americans_have_social_security_numbers() -> None:
    source = census()
    countries = set()
    for _ in range(60):
        profile = source.single([PiiType.CODE] * 11, alias=False)
        if profile.fact("Social Security Number"):
            countries.add(profile.draw.country.name)
    assert countries == {"United States"}


def test_names_are_full_names_unless_aliases_are_allowed() -> None:
    assert {profile.facts[0].category for profile in singles(30)} == {"Full Name"}
    assert {profile.facts[0].category for profile in singles(60, alias=True)} == {
        "Full Name",
        "Nickname",
        "Social Media Handle",
    }


@EACH_RELATION
def test_two_people_have_the_requested_types_and_no_conflict(relation: Relation) -> None:
    for a, b in pairs(relation, 6):
        assert (a.id, b.id) == ("A", "B")
        assert types_of(a) == types_of(b) == Counter([PiiType.PER, *TYPES])
        assert not [*conflicts(a), *conflicts(b), *relation_conflicts(a, b, relation)]


@EACH_RELATION
def test_related_people_often_share_a_value(relation: Relation) -> None:
    for category, facet in relation.shared:
        shared = 0
        for a, b in pairs(relation, 12):
            fact_a, fact_b = a.fact(category), b.fact(category)
            shared += fact_a is not None and fact_a.facet == facet and fact_a == fact_b
        # Nine of twelve are expected, because 75% share it and all have the type.
        assert shared >= 3, category


def test_siblings_live_in_one_city_and_have_names_of_one_culture() -> None:
    pools = load_pools("test")
    family_names = [set(pools.names(culture, "she")[1]) for culture in pools.named_cultures]
    for a, b in pairs(RELATIONS["siblings"], 12):
        assert a.draw.city == b.draw.city
        names = {profile.facts[0].value.split()[1] for profile in (a, b)}
        assert any(names <= of_culture for of_culture in family_names), names


def test_the_second_person_has_about_half_of_the_first_one_s_kinds_of_facts() -> None:
    def kinds(profile: Profile) -> set[tuple[str, str]]:
        return {(fact.category, fact.facet) for fact in profile.facts}

    common = [len(kinds(a) & kinds(b)) for a, b in pairs(RELATIONS["friends"], 40)]
    # Of twenty facts, eight or nine would be common by chance.
    assert 10 < sum(common) / len(common) < 14
