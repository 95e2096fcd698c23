from __future__ import annotations

from itertools import groupby
from random import Random
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_bench.construction.plan import group, topic
from pii_bench.taxonomy import TYPE_OF_CATEGORY
from tests.construction.world import fact

if TYPE_CHECKING:
    from pii_bench.construction.people import Fact

FACTS = [fact(category, "x") for category in TYPE_OF_CATEGORY]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Occupation", "work"),
        ("Date: job-start", "work"),  # by its facet
        ("Date: exam", "study"),
        ("Loan Amount", "money"),
        ("Blood Type", "health"),
        ("Time: medication", "health"),
        ("Nationality", "self"),
        ("Landmark: meeting", "place"),  # whatever its facet
        ("Passport Number", "papers"),
        ("Time: appointment", "papers"),
    ],
)
def test_topics(name: str, expected: str) -> None:
    assert topic(fact(name, "x")) == expected


@given(
    st.lists(st.sampled_from(FACTS), unique=True),
    st.sampled_from([{1: 0.6, 2: 0.32, 3: 0.08}, {1: 0.06, 2: 0.34, 3: 0.6}]),
    st.integers(0, 99),
)
def test_groups_say_every_fact_once_topic_by_topic(
    facts: list[Fact], sizes: dict[int, float], seed: int
) -> None:
    groups = group(facts, sizes, Random(seed))
    told = [each for one in groups for each in one]
    assert sorted(map(id, told)) == sorted(map(id, facts))
    assert all(1 <= len(one) <= 3 for one in groups)
    topics = [name for name, _ in groupby(map(topic, told))]
    assert len(topics) == len(set(topics)), "no topic is taken up again"


def test_no_facts_no_groups() -> None:
    assert group([], {1: 1.0}, Random(1)) == []


@pytest.mark.parametrize(
    ("sizes", "count", "expected"),
    [
        ({1: 0, 2: 1, 3: 0}, 5, [2, 3]),
        ({1: 0, 2: 1e-9, 3: 1}, 4, [2, 2]),
        ({1: 0, 2: 1e-9, 3: 1}, 7, [3, 2, 2]),
        # Where single facts are common, one may be left over.
        ({1: 1, 2: 0, 3: 0}, 3, [1, 1, 1]),
    ],
)
def test_where_single_facts_are_rare_none_is_left_over(
    sizes: dict[int, float], count: int, expected: list[int]
) -> None:
    assert [len(one) for one in group(FACTS[:count], sizes, Random(1))] == expected
