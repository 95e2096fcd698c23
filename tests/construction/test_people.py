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
    Conflict,
    Relation,
    conflicts,
    relation_conflicts,
)
from pii_bench.construction.values import facets_of
from pii_bench.taxonomy import TYPE_OF_CATEGORY, PiiType

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pii_bench.construction.people import Profile

# Every rule has something to look at: all demographics but for a few, and all amounts.
TYPES = [
    *[PiiType.DEM] * 8,
    *[PiiType.QUANTITY] * 5,
    *[PiiType.DATETIME] * 2,
    *[PiiType.LOC] * 2,
    *[PiiType.ORG] * 2,
    PiiType.CODE,
]
EACH_RELATION = pytest.mark.parametrize("relation", RELATIONS.values(), ids=RELATIONS)


def census(seed: int = 1) -> Census:
    return Census(load_pools("test"), Random(seed))


def singles(count: int, *, alias: bool = False) -> Iterator[Profile]:
    own = census()
    while count:
        try:
            yield own.single(TYPES, alias=alias)
        except Unresolvable:
            continue
        count -= 1


def pairs(relation: Relation, count: int) -> Iterator[tuple[Profile, Profile]]:
    own = census()
    while count:
        try:
            yield own.pair((TYPES, TYPES), relation, alias=False)
        except Unresolvable:
            continue
        count -= 1


def types_of(profile: Profile) -> Counter[PiiType]:
    return Counter(TYPE_OF_CATEGORY[fact.category] for fact in profile.facts)


def test_people_have_a_name_the_types_they_were_given_and_no_conflict() -> None:
    for profile in singles(40):
        assert types_of(profile) == Counter([PiiType.PER, *TYPES])
        assert len({fact.category for fact in profile.facts}) == len(profile.facts)
        assert all(fact.facet in facets_of(fact.category) for fact in profile.facts)
        assert conflicts(profile) == []


def test_resolution_changes_values_never_categories(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Profile] = []

    def watched(profile: Profile) -> list[Conflict]:
        seen.append(profile)
        return conflicts(profile)

    monkeypatch.setattr(people, "conflicts", watched)
    changed = 0
    for seed in range(30):
        seen.clear()
        with suppress(Unresolvable):
            census(seed).single(TYPES, alias=False)
        assert len({tuple(fact.category for fact in each.facts) for each in seen}) == 1
        changed += len(seen) > 1
    assert changed, "some of them had conflicts to resolve"


def test_what_cannot_be_resolved_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    never_content = [("A", "Age")]
    monkeypatch.setattr(people, "conflicts", lambda _: never_content)
    with pytest.raises(Unresolvable):
        census().single(TYPES, alias=False)


def test_only_americans_have_social_security_numbers() -> None:
    own = census()
    homes = set()
    for _ in range(60):
        profile = own.single([PiiType.CODE] * 11, alias=False)
        if profile.fact("Social Security Number"):
            homes.add(profile.draw.country.name)
    assert homes == {"United States"}


def test_names_are_full_unless_the_register_allows_others() -> None:
    assert {profile.facts[0].category for profile in singles(30)} == {"Full Name"}
    assert {profile.facts[0].category for profile in singles(60, alias=True)} == {
        "Full Name",
        "Nickname",
        "Social Media Handle",
    }


@EACH_RELATION
def test_two_people_have_their_types_and_no_conflict(relation: Relation) -> None:
    for a, b in pairs(relation, 6):
        assert (a.id, b.id) == ("A", "B")
        assert types_of(a) == types_of(b) == Counter([PiiType.PER, *TYPES])
        assert not [*conflicts(a), *conflicts(b), *relation_conflicts(a, b, relation)]


@EACH_RELATION
def test_what_is_shared_is_one_value(relation: Relation) -> None:
    for category, facet in relation.shared:
        both = 0
        for a, b in pairs(relation, 12):
            facts = a.fact(category), b.fact(category)
            if facts[0] and facts[1] and facts[0].facet == facts[1].facet == facet:
                both += facts[0].value == facts[1].value
        # Three times in four, where the types allow it, as they do here.
        assert both >= 3, category


def test_kin_live_in_one_place_and_have_names_of_one_culture() -> None:
    pools = load_pools("test")
    family_names = [set(pools.names(culture, "she")[1]) for culture in pools.named_cultures]
    for a, b in pairs(RELATIONS["siblings"], 12):
        assert a.draw.city == b.draw.city
        both = {profile.facts[0].value.split()[1] for profile in (a, b)}
        assert any(both <= of_culture for of_culture in family_names), both


def test_the_other_person_has_some_of_the_same_so_that_the_person_must_be_understood() -> None:
    common = [
        len({(f.category, f.facet) for f in a.facts} & {(f.category, f.facet) for f in b.facts})
        for a, b in pairs(RELATIONS["friends"], 40)
    ]
    # Of twenty facts 8 or 9 by chance alone; two equal lists would read as a table.
    assert 10 < sum(common) / len(common) < 14
