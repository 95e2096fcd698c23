from __future__ import annotations

from collections import Counter
from functools import cache

import pytest

from pii_bench.construction.commissions import FREE, ORDERS, PORTION, Commission, commission, sheet
from pii_bench.construction.pools import load_voices
from pii_bench.taxonomy import TYPE_OF_CATEGORY, PiiType


@cache
def all_of(name: str) -> list[Commission]:
    return [commission(ORDERS[name], n) for n in range(1, ORDERS[name].size + 1)]


@pytest.fixture(scope="module")
def single() -> list[Commission]:
    return all_of("single")


@pytest.fixture(scope="module")
def multi() -> list[Commission]:
    return all_of("multi")


def test_the_same_number_gives_the_same_commission() -> None:
    order = ORDERS["dev-multi"]

    assert commission(order, 7) == commission(order, 7)
    assert commission(order, 7) != commission(order, 8)


def test_types_are_the_paper_s_counts(single: list[Commission], multi: list[Commission]) -> None:
    for commissions, name in ((single, "single"), (multi, "multi")):
        counts = Counter(
            TYPE_OF_CATEGORY[fact.category]
            for asked in commissions
            for profile in asked.profiles.values()
            for fact in profile.facts
        )
        assert counts == ORDERS[name].types


@pytest.mark.parametrize(("name", "needs"), [("single", 1.95), ("multi", 2.06)])
def test_means_are_the_paper_s(name: str, needs: float) -> None:
    commissions = all_of(name)
    sizes = [asked.needs for order in commissions for asked in order.asked]
    chars = {"single": 893, "multi": 653}[name]

    assert sum(sizes) / len(sizes) == pytest.approx(needs, abs=0.03)
    assert sum(order.chars for order in commissions) / len(commissions) == pytest.approx(
        chars, rel=0.02
    )


def test_references_forms_and_kinds_of_text_are_shared_out(single: list[Commission]) -> None:
    references = Counter(asked.reference for order in single for asked in order.asked)
    forms = Counter(order.form for order in single)
    offered = Counter(name for order in single for name in order.registers)

    assert max(references.values()) - min(references.values()) <= 1
    assert forms["paper"] / len(single) == pytest.approx(0.5, abs=0.03)
    assert set(offered) == set(load_voices().registers)


def test_facts_belong_to_the_matter_of_the_text(single: list[Commission]) -> None:
    themes = load_voices().themes
    told = [
        fact.category in themes[order.theme].facts
        for order in single
        for fact in order.profiles["A"].facts[1:]
        if TYPE_OF_CATEGORY[fact.category] is not PiiType.DATETIME
    ]

    assert sum(told) / len(told) > 0.9


def test_train_and_test_share_no_name(single: list[Commission]) -> None:
    def names(commissions: list[Commission]) -> set[str]:
        return {
            value
            for order in commissions
            for tag, (_, fact) in order.tags.items()
            if TYPE_OF_CATEGORY[fact.category] is PiiType.PER
            for value in order.allowed(tag)
        }

    assert names(single).isdisjoint(names(all_of("train-single")))


def test_a_person_s_name_has_two_spares_and_free_values_none() -> None:
    asked = commission(ORDERS["single"], 1)
    first = asked.tags["A1"][1]

    assert TYPE_OF_CATEGORY[first.category] is PiiType.PER
    assert 2 <= len(asked.allowed("A1")) <= 3
    free = [tag for tag, (_, fact) in asked.tags.items() if fact.category in FREE]
    assert free
    assert all(len(asked.allowed(tag)) == 1 for tag in free)


def test_a_sheet_holds_twelve_commissions_and_no_free_value() -> None:
    order = ORDERS["single"]
    told = sheet(order, 2)
    free = [
        fact.value
        for number in range(PORTION + 1, 2 * PORTION + 1)
        for fact in commission(order, number).profiles["A"].facts
        if fact.category in FREE and fact.category != "City/Region"
    ]

    assert told.count("=== single-") == PORTION
    assert "=== single-0013\n" in told
    assert not [value for value in free if f": {value}" in told]


def test_the_last_sheet_is_short() -> None:
    assert sheet(ORDERS["single"], 102).count("===") == 1214 - 101 * PORTION
