from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from pii_bench.construction.pools import Pools, load_pools

if TYPE_CHECKING:
    from collections.abc import Iterator

# Lists that are complete, so that both splits use all of their values.
SHARED = {"orientations", "religions", "races", "blood_types"}
TEST, TRAIN = load_pools("test"), load_pools("train")
EACH_SPLIT = pytest.mark.parametrize("pools", [TEST, TRAIN], ids=["test", "train"])


def values(pools: Pools) -> Iterator[tuple[str, str]]:
    """Yield (kind, value) of every value that only one split has."""
    for name, members in pools.lists.items():
        if name not in SHARED:
            yield from ((name, member) for member in members)
    yield from (("occupation", name) for name in pools.occupations)
    yield from (("education level", name) for name in pools.education_levels)
    yield from (("degree", name) for name in pools.degrees)
    for country in pools.countries.values():
        yield from (("agency", name) for name in country.agencies)
        yield from (("party", name) for name in country.parties)
        yield from (("street", name) for name in country.streets)
        for city in country.cities.values():
            yield "city", city.name
            yield from (("landmark", name) for name in city.landmarks)
            yield from (("university", name) for name in city.universities)


def test_test_and_train_share_no_value() -> None:
    assert set(values(TEST)).isdisjoint(values(TRAIN))


def test_complete_lists_are_the_same_in_both_splits() -> None:
    assert all(TEST.lists[name] == TRAIN.lists[name] for name in SHARED)
    assert TEST.genders == TRAIN.genders


@EACH_SPLIT
def test_no_pool_contains_a_value_twice(pools: Pools) -> None:
    counts = Counter(values(pools))
    # Countries with the same language may have the same street name or party.
    repeated = [
        (kind, value)
        for (kind, value), count in counts.items()
        if count > 1 and kind not in {"street", "party"}
    ]
    assert repeated == []


@EACH_SPLIT
def test_no_list_of_values_is_empty(pools: Pools) -> None:
    assert all([pools.countries, pools.occupations, pools.education_levels, pools.degrees])
    assert all(pools.lists.values())
    assert set(pools.genders.values()) == {"she", "he", "they"}
    for country in pools.countries.values():
        assert all([country.agencies, country.parties, country.streets]), country.name
        assert all(city.landmarks and city.universities for city in country.cities.values())


@EACH_SPLIT
def test_formats_of_places_have_one_placeholder(pools: Pools) -> None:
    for country in pools.countries.values():
        assert country.currency.count("{}") == 1
        assert country.per_usd > 0
        assert re.fullmatch(r"\+\d{1,3}", country.phone)
        for street in country.streets:
            assert street.count("{n}") == 1
            assert not re.search(r"\d", street), "the rules read the only number of an address"


@EACH_SPLIT
def test_people_can_meet_the_requirements_of_every_occupation(pools: Pools) -> None:
    ranks = {level.rank for level in pools.education_levels.values()}
    for occupation in pools.occupations.values():
        assert 0 < occupation.low < occupation.high, occupation.name
        assert 16 <= occupation.age < 84, occupation.name
        assert occupation.education <= max(ranks), occupation.name


def name_parts(pools: Pools) -> Iterator[str]:
    for culture in pools.named_cultures:
        for pronoun in ("she", "he", "they"):
            first, last = pools.names(culture, pronoun)
            assert len(first) * len(last) > 1, (culture, pronoun)
            yield from first + last


@EACH_SPLIT
def test_first_and_family_names_are_single_words(pools: Pools) -> None:
    assert all(part.replace("-", "").isalpha() for part in name_parts(pools))


def test_test_has_two_thirds_of_the_names_and_shares_none_with_train() -> None:
    # The lists of many cultures contain the same name, such as "Maria".
    test, train = set(name_parts(TEST)), set(name_parts(TRAIN))

    assert test.isdisjoint(train)
    assert len(test) / len(test | train) == pytest.approx(2 / 3, abs=0.03)


def test_names_come_from_hand_made_lists_and_from_faker() -> None:
    assert "Goro" in TEST.names("japanese", "he")[0]
    assert "Agneta" in TEST.names("Sweden", "she")[0]
