from __future__ import annotations

from itertools import groupby
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_bench.construction.plan import group, topic
from pii_bench.taxonomy import TYPE_OF_CATEGORY
from tests.construction.world import fact

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
    st.sampled_from([{1: 1.0}, {1: 0.6, 2: 0.32, 3: 0.08}, {2: 1.0}, {3: 1.0}]),
    st.integers(0, 99),
)
def test_groups_say_every_fact_once_topic_by_topic(
    facts: list[object], sizes: dict[int, float], seed: int
) -> None:
    groups = group(facts, sizes, Random(seed))  # type: ignore[arg-type]
    told = [each for one in groups for each in one]
    assert sorted(map(id, told)) == sorted(map(id, facts))
    assert all(len(one) in sizes for one in groups[:-1])
    topics = [name for name, _ in groupby(map(topic, told))]
    assert len(topics) == len(set(topics)), "no topic is taken up again"


def test_no_facts_no_groups() -> None:
    assert group([], {1: 1.0}, Random(1)) == []
