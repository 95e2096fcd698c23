from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from pii_bench.construction.pools import Pools, load_pools
from pii_bench.errors import InputFileError
from tests.construction.world import POOLS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# Lists that are closed in the world; both splits draw from the whole of them.
SHARED = {"orientations", "religions", "races", "blood_types"}
TEST, TRAIN = load_pools("test"), load_pools("train")
EACH_SPLIT = pytest.mark.parametrize("pools", [TEST, TRAIN], ids=["test", "train"])


def values(pools: Pools) -> Iterator[tuple[str, str]]:
    """Every value that is of one split only, with what it is."""
    for name, members in pools.lists.items():
        if name not in SHARED:
            yield from ((name, member) for member in members)
    for kind, table in (
        ("occupation", pools.occupations),
        ("education level", pools.education_levels),
        ("degree", pools.degrees),
    ):
        yield from ((kind, name) for name in table)
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


def test_closed_lists_are_the_same_in_both_splits() -> None:
    assert all(TEST.lists[name] == TRAIN.lists[name] for name in SHARED)
    assert TEST.genders == TRAIN.genders


@EACH_SPLIT
def test_no_value_stands_in_a_pool_twice(pools: Pools) -> None:
    repeated = [value for value, times in Counter(values(pools)).items() if times > 1]
    # Countries of one language may have a street name, a party or a leaning in common.
    assert not [value for value in repeated if value[0] not in {"street", "party"}]


@EACH_SPLIT
def test_nothing_that_a_person_needs_is_empty(pools: Pools) -> None:
    assert pools.countries
    assert pools.occupations
    assert pools.education_levels
    assert pools.degrees
    assert all(pools.lists.values())
    assert set(pools.genders.values()) == {"she", "he", "they"}
    for country in pools.countries.values():
        assert country.agencies, country.name
        assert country.parties, country.name
        assert country.streets, country.name
        assert all(city.landmarks and city.universities for city in country.cities.values())


@EACH_SPLIT
def test_templates_have_one_place_to_fill(pools: Pools) -> None:
    for country in pools.countries.values():
        assert country.currency.count("{}") == 1
        assert country.per_usd > 0
        assert re.fullmatch(r"\+\d{1,3}", country.phone)
        for street in country.streets:
            assert street.count("{n}") == 1
            assert not re.search(r"\d", street), "the rules read the number of an address"


@EACH_SPLIT
def test_every_occupation_can_be_held(pools: Pools) -> None:
    ranks = {level.rank for level in pools.education_levels.values()}
    for job in pools.occupations.values():
        assert 0 < job.low < job.high, job.name
        assert 16 <= job.age < 84, job.name
        assert job.education <= max(ranks), job.name


def parts_of_names(pools: Pools) -> Iterator[str]:
    for culture in pools.named_cultures:
        for pronoun in ("she", "he", "they"):
            first, last = pools.names(culture, pronoun)
            assert len(first) * len(last) > 1, (culture, pronoun)
            yield from first + last


@EACH_SPLIT
def test_names_are_single_words(pools: Pools) -> None:
    assert not [part for part in parts_of_names(pools) if not part.replace("-", "").isalpha()]


def test_test_and_train_share_no_part_of_a_name() -> None:
    # Over all cultures and pronouns: "Maria" is one string in many of their lists.
    test, train = set(parts_of_names(TEST)), set(parts_of_names(TRAIN))

    assert not test & train
    # Two thirds of all are of test.
    assert len(test) / len(test | train) == pytest.approx(2 / 3, abs=0.03)


def test_cultures_are_hand_made_pools_and_countries_that_faker_knows() -> None:
    assert POOLS.named_cultures == ["japanese", "Sweden"]
    assert POOLS.names("japanese", "he") == (("Goro",), ("Ueno",))
    assert "Agneta" in POOLS.names("Sweden", "she")[0]


def test_an_absent_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputFileError, match=r"places\.toml"):
        load_pools("test", tmp_path)


def test_a_broken_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "places.toml").write_text("[[country\n", encoding="utf-8")
    with pytest.raises(InputFileError, match=r"places\.toml: no pool of values"):
        load_pools("test", tmp_path)
