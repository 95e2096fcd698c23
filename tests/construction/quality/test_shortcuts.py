from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_bench.construction.quality.shortcuts import (
    AllEntities,
    Choice,
    KeywordRules,
    RandomChoice,
    macro_f1,
    questions,
)
from tests.construction.quality.asked import ask
from tests.datasets.check.samples import build

TWO = ask("", Leeds="City/Region", potter="Occupation").choices


def test_a_question_offers_everything_but_names_with_its_person() -> None:
    sample = build(
        "Ann Lee is 32. Bo Roe is a potter.",
        {"Ann Lee": "Full Name", "32": "Age"},
        {"Bo Roe": "Full Name", "potter": "Occupation"},
        query="Is what he does a trade?",
        related=[("B", "potter")],
    )

    (question,) = questions([sample])

    assert question.query == "Is what he does a trade?"
    assert question.choices == (Choice("32", "Age", 0), Choice("potter", "Occupation", 1))
    assert question.gold == {"potter"}


def test_a_sample_without_a_query_asks_nothing() -> None:
    assert questions([build("Late.", query=None)]) == []


def test_f1_is_the_mean_over_questions() -> None:
    asked = [ask("", "a", a="Age"), ask("", "a", a="Age", b="Date")]

    # 1 and, of precision 1/2 and recall 1, 2/3.
    assert macro_f1(asked, [["a"], ["a", "b"]]) == pytest.approx(5 / 6)
    assert macro_f1([], []) == 0


def test_a_prediction_must_not_be_missing() -> None:
    with pytest.raises(ValueError, match="shorter"):
        macro_f1([ask("", "a", a="Age")], [])


def test_all_entities() -> None:
    assert AllEntities().predict("Am I old?", TWO) == ["Leeds", "potter"]


def test_random_draws_as_many_as_train_needs() -> None:
    system = RandomChoice()
    # Means of 1 and 3 is 2.
    system.fit([ask("", "a"), ask("", "a", "b", "c")], [])
    choices = ask("", a="Age", b="Date", c="Time", d="Race").choices

    drawn = {tuple(sorted(system.predict(f"Question {n}?", choices))) for n in range(100)}

    assert drawn == {("a", "b"), ("a", "c"), ("a", "d"), ("b", "c"), ("b", "d"), ("c", "d")}


@given(st.text(), st.integers(0, 5))
def test_random_draws_the_same_again_and_never_more_than_there_are(query: str, size: int) -> None:
    drawn = RandomChoice(size=size).predict(query, TWO)

    assert drawn == RandomChoice(size=size).predict(query, TWO)
    assert len(set(drawn)) == min(size, 2)


@pytest.mark.parametrize(
    ("query", "chosen"),
    [
        ("Is my City expensive?", ["Leeds"]),
        ("Do towns like mine pay well?", ["Leeds"]),
        ("Is my job safe in this town?", ["Leeds", "potter"]),
        ("Does jobless insurance pay?", ["Leeds", "potter"]),
        ("What now?", ["Leeds", "potter"]),
    ],
    ids=["name", "plural", "two", "part of a word", "none, so all"],
)
def test_keyword_rules(query: str, chosen: list[str]) -> None:
    assert KeywordRules().predict(query, TWO) == chosen


def test_keyword_rules_take_the_name_of_a_foreign_category() -> None:
    choices = ask("", red="Favourite Colour", Leeds="City/Region").choices

    assert KeywordRules().predict("Does my favourite colour matter?", choices) == ["red"]
