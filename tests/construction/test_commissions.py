from __future__ import annotations

from collections import Counter
from functools import cache
from itertools import chain
from random import Random
from statistics import mean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_bench.construction.commissions import (
    FREE,
    ORDERS,
    PORTION,
    Commission,
    allot_types,
    commission,
    commission_sheet,
)
from pii_bench.construction.pools import load_voices
from pii_bench.datasets.statistics import published_statistics
from pii_bench.taxonomy import CATEGORIES, TYPE_OF_CATEGORY, PiiType


@cache
def all_of(name: str) -> list[Commission]:
    return [commission(ORDERS[name], n) for n in range(1, ORDERS[name].size + 1)]


def test_the_same_number_gives_the_same_commission() -> None:
    order = ORDERS["dev-multi"]

    assert commission(order, 7) == commission(order, 7)
    assert commission(order, 7) != commission(order, 8)


@pytest.mark.parametrize(("name", "needs", "chars"), [("single", 1.95, 893), ("multi", 2.06, 653)])
def test_types_and_means_are_the_paper_s(name: str, needs: float, chars: int) -> None:
    commissions = all_of(name)
    sizes = [asked.needs for order in commissions for asked in order.queries]
    types = Counter(
        TYPE_OF_CATEGORY[fact.category] for order in commissions for fact in order.facts.values()
    )

    assert types == published_statistics()[name].types
    assert mean(sizes) == pytest.approx(needs, abs=0.03)
    assert mean(order.chars for order in commissions) == pytest.approx(chars, rel=0.02)


def test_each_round_of_a_set_has_all_shares() -> None:
    order = ORDERS["train-more-multi"]
    commissions = all_of(order.name)
    rounds = commissions[:360], commissions[360:720], commissions[720:]

    assert (order.rounds, order.round_size) == (3, 360)
    for part in rounds:
        facts = (fact for each in part for fact in each.facts.values())
        assert Counter(TYPE_OF_CATEGORY[fact.category] for fact in facts) == order.round_types
    assert len({tuple(each.writer for each in part) for part in rounds}) == 3


def test_references_forms_and_kinds_of_text_are_balanced() -> None:
    single = all_of("single")
    references = Counter(asked.reference for order in single for asked in order.queries)
    forms = Counter(order.form for order in single)
    offered = Counter(name for order in single for name in order.registers)

    assert max(references.values()) - min(references.values()) <= 1
    assert forms["paper"] / len(single) == pytest.approx(0.5, abs=0.03)
    assert set(offered) == set(load_voices().registers)


def test_facts_suit_the_theme_of_the_text() -> None:
    single = all_of("single")
    themes = load_voices().themes
    suits = [
        fact.category in themes[order.theme].facts
        for order in single
        for fact in order.profiles["A"].facts[1:]
        if TYPE_OF_CATEGORY[fact.category] is not PiiType.DATETIME
    ]

    assert sum(suits) / len(suits) > 0.9


def test_train_and_test_share_no_name() -> None:
    def names(commissions: list[Commission]) -> set[str]:
        return {
            value
            for order in commissions
            for tag, fact in order.facts.items()
            if TYPE_OF_CATEGORY[fact.category] is PiiType.PER
            for value in order.allowed(tag)
        }

    assert names(all_of("single")).isdisjoint(names(all_of("train-single")))


def test_a_name_has_alternatives_but_a_free_value_none() -> None:
    asked = commission(ORDERS["single"], 1)
    first = asked.facts["A1"]

    assert TYPE_OF_CATEGORY[first.category] is PiiType.PER
    assert 2 <= len(asked.allowed("A1")) <= 3
    free = [tag for tag, fact in asked.facts.items() if fact.category in FREE]
    assert free
    assert all(len(asked.allowed(tag)) == 1 for tag in free)


def test_a_sheet_contains_at_most_twelve_commissions_and_no_free_value() -> None:
    order = ORDERS["single"]
    text = commission_sheet(order, 2)
    free = [
        fact.value
        for number in range(PORTION + 1, 2 * PORTION + 1)
        for fact in commission(order, number).profiles["A"].facts
        if fact.category in FREE and fact.category != "City/Region"
    ]

    assert text.count("=== single-") == PORTION
    assert commission_sheet(order, 102).count("=== single-") == 1214 - 101 * PORTION
    assert "=== single-0013\n" in text
    assert not [value for value in free if f": {value}" in text]


@st.composite
def decks(draw: st.DrawFn) -> tuple[int, dict[PiiType, int]]:
    """At least five people; on average 0.6 to 2 entities of each type per person."""
    people = draw(st.integers(5, 60))
    some = st.integers(people * 3 // 5 + 1, people * 2)
    return people, {t: people if t is PiiType.PER else draw(some) for t in PiiType}


@given(decks(), st.integers(0, 999))
def test_counts_are_exact_and_no_person_has_more_entities_than_categories(
    deck: tuple[int, dict[PiiType, int]], seed: int
) -> None:
    people, counts = deck
    dealt = allot_types(people, counts, Random(seed))
    assert len(dealt) == people
    assert Counter(chain(*dealt)) == Counter(counts) - Counter({PiiType.PER: people})
    for own in dealt:
        assert 3 <= len(own) <= 15
        assert all(times <= len(CATEGORIES[t]) for t, times in Counter(own).items())


def test_a_type_of_which_everybody_has_all_categories() -> None:
    # Three categories of place each, so that no person may have a fourth.
    counts = {PiiType.PER: 10, PiiType.LOC: 30, PiiType.DEM: 20}
    dealt = allot_types(10, counts, Random(1))
    assert all(own.count(PiiType.LOC) == 3 for own in dealt)
