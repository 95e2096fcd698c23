from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest

from pii_bench.construction.people import Names
from pii_bench.construction.pools import load_pools
from tests.construction.world import POOLS

if TYPE_CHECKING:
    from pii_bench.construction.pools import Split


PRONOUNS = ("she", "he", "they")
DRAWS = 60


@pytest.fixture(scope="module")
def drawn() -> dict[Split, list[str]]:
    """Names of every culture and pronoun."""
    found: dict[Split, list[str]] = {}
    splits: tuple[Split, ...] = ("test", "train")
    for split in splits:
        names, random = Names(load_pools(split)), Random(1)
        found[split] = [
            names.full_name(random, culture, pronoun)
            for culture in names.cultures
            for pronoun in PRONOUNS
            for _ in range(DRAWS)
        ]
    return found


def test_a_full_name_is_two_single_words(drawn: dict[Split, list[str]]) -> None:
    for name in drawn["test"] + drawn["train"]:
        first, last = name.split(" ")
        assert first.replace("-", "").isalpha(), name
        assert last.replace("-", "").isalpha(), name


def test_test_and_train_share_no_part_of_a_name(drawn: dict[Split, list[str]]) -> None:
    # Over all cultures and pronouns: "Maria" is one string in many of their lists.
    test, train = ({part for name in drawn[split] for part in name.split()} for split in drawn)
    assert not test & train


def test_cultures_are_hand_made_pools_and_countries_that_faker_knows() -> None:
    assert Names(POOLS).cultures == ["japanese", "Sweden"]


def test_the_pronoun_chooses_the_first_name() -> None:
    names = Names(POOLS)
    assert [names.full_name(Random(1), "japanese", pronoun) for pronoun in PRONOUNS] == [
        "Yuka Ueno",
        "Goro Ueno",
        "Akira Ueno",
    ]


def test_one_state_gives_one_name() -> None:
    one, other = (Names(load_pools("test")) for _ in range(2))
    for culture in one.cultures:
        assert one.full_name(Random(7), culture, "she") == other.full_name(
            Random(7), culture, "she"
        )


def test_every_culture_has_names_to_choose_from(drawn: dict[Split, list[str]]) -> None:
    # Sixty draws of one culture and pronoun, two names at the least.
    for names in drawn.values():
        for start in range(0, len(names), DRAWS):
            assert len(set(names[start : start + DRAWS])) > 1, names[start]
