from __future__ import annotations

from typing import Any

import pytest

from pii_bench.datasets.check.queries import query_problems
from tests.datasets.check.samples import ANN, ann, build, rules


@pytest.mark.parametrize(
    ("changes", "rule", "reason"),
    [
        (
            {"related": [("A", "baker")]},
            "related-outside",
            "'baker' is no entity of subject A",
        ),
        (
            {"related": [("B", "potter")]},
            "related-outside",
            "'potter' is no entity of subject B",
        ),
        ({"related": [("A", "Ann Lee")]}, "related-person", "'Ann Lee' is a person's name"),
        (
            {"related": [("A", "32"), ("A", "32")]},
            "related-repeated",
            "'32' of subject A is listed 2 times",
        ),
        ({"related": []}, "related-count", "0 entities are needed, not 1 to 3"),
        (
            {"joined": ["a", "b", "c", "d", "e"]},
            "related-count",
            "1 entities are needed, not 3 to 9",
        ),
        ({"query": "Is a Potter rich?"}, "query-value", "the query holds 'potter'"),
        ({"query": "Is 32 old?"}, "query-value", "the query holds '32'"),
        ({"query": "Is ANN LEE right?"}, "query-value", "the query holds 'Ann Lee'"),
        ({"query": "Is Lee right?"}, "query-name", "the query holds 'Lee', of a name"),
        ({"query": " "}, "query-empty", "the query has no text"),
    ],
)
def test_a_fault_of_the_query(changes: dict[str, Any], rule: str, reason: str) -> None:
    found = [(problem.rule, problem.reason) for problem in query_problems(ann(**changes))]

    assert found == [(rule, reason)]


@pytest.mark.parametrize(
    "query", ["Is pottery sound?", "Would 1,320 or 2032 do?", "Is an annual lee shore safe?"]
)
def test_words_that_are_no_value(query: str) -> None:
    assert rules(query_problems, ann(query=query)) == []


def test_a_handle_is_not_named_without_its_sign() -> None:
    sample = build(
        "@moss77 is 32.",
        {"@moss77": "Social Media Handle", "32": "Age"},
        query="How old is moss77?",
        related=[("A", "32")],
    )

    assert rules(query_problems, sample) == ["query-name"]


def test_more_than_three_needs_are_for_conversations() -> None:
    facts = {"32": "Age", "Hull": "City/Region", "O+": "Blood Type", "gout": "Medical Condition"}
    text = "Ann Lee, 32, of Hull, O+, has gout."
    needs = [("A", fact) for fact in facts]

    alone = build(text, ANN | facts, related=needs)
    joined = build(text, ANN | facts, related=needs, joined=list("abcde"))

    assert rules(query_problems, alone) == ["related-count"]
    assert rules(query_problems, joined) == []


def test_one_thing_that_two_people_share_may_be_needed_of_both() -> None:
    both = build(
        "Both live in Hull.",
        {"Hull": "City/Region"},
        {"Hull": "City/Region"},
        related=[("A", "Hull"), ("B", "Hull")],
    )

    assert rules(query_problems, both) == []


def test_without_a_query_nothing_is_asked() -> None:
    assert rules(query_problems, ann(query=None, related=[])) == []
