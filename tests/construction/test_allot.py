from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_bench.construction.allot import LEAST, MOST, allot_types
from pii_bench.taxonomy import CATEGORIES, PiiType


@st.composite
def decks(draw: st.DrawFn) -> tuple[int, dict[PiiType, int]]:
    """From five people on, each type on average 0.6 to twice a person: 3.6 to 12 facts each."""
    people = draw(st.integers(5, 60))
    some = st.integers(people * 3 // 5 + 1, people * 2)
    return people, {t: people if t is PiiType.PER else draw(some) for t in PiiType}


@given(decks(), st.integers(0, 999))
def test_counts_are_met_exactly_and_nobody_has_more_than_there_are_categories(
    deck: tuple[int, dict[PiiType, int]], seed: int
) -> None:
    people, counts = deck
    dealt = allot_types(people, counts, Random(seed))
    assert len(dealt) == people
    assert Counter(t for own in dealt for t in own) == Counter(counts) - Counter(
        {PiiType.PER: people}
    )
    for own in dealt:
        # With the name, four to sixteen.
        assert LEAST <= len(own) + 1 <= MOST
        assert all(times <= len(CATEGORIES[t]) for t, times in Counter(own).items())


def test_the_bounds_are_the_paper_s() -> None:
    assert (LEAST, MOST) == (4, 16)


def test_types_that_everybody_has_all_of() -> None:
    # Three categories of place each, so that nobody may have a fourth.
    counts = {PiiType.PER: 10, PiiType.LOC: 30, PiiType.DEM: 20}
    dealt = allot_types(10, counts, Random(1))
    assert all(own.count(PiiType.LOC) == 3 for own in dealt)


def test_the_same_state_deals_the_same() -> None:
    counts = dict.fromkeys(PiiType, 20)
    assert allot_types(20, counts, Random(3)) == allot_types(20, counts, Random(3))
    assert allot_types(20, counts, Random(3)) != allot_types(20, counts, Random(4))


@pytest.mark.parametrize("seed", range(3))
def test_people_differ_in_how_much_is_said_of_them(seed: int) -> None:
    counts = dict.fromkeys(PiiType, 50)
    sizes = Counter(map(len, allot_types(50, counts, Random(seed))))
    assert len(sizes) >= 5
