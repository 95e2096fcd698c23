from __future__ import annotations

import pytest

from pii_bench.analysis.utility.responses import Ratings, read_answer, read_verdict
from pii_bench.models.base import Completion, Draws, Finish


def verdict(unmasked_first: str, masked_first: str) -> Draws:
    return Draws((Completion(unmasked_first), Completion(masked_first)))


@pytest.mark.parametrize(
    ("completion", "answer"),
    [
        (Completion(" You are young. \n", Finish.STOP), "You are young."),
        (Completion("You are", Finish.LENGTH), "You are"),
        (Completion("I cannot tell.", Finish.UNKNOWN), "I cannot tell."),
        (Completion("<think>32 is young</think>Young.", Finish.STOP), "Young."),
        (Completion("<think>32 is", Finish.LENGTH), None),
        (Completion(" \n", Finish.STOP), None),
        (Completion("You", Finish.FILTER), None),
        (Completion("I won't.", Finish.REFUSAL), None),
    ],
)
def test_what_an_answerer_says(completion: Completion, answer: str | None) -> None:
    assert read_answer(completion) == answer


def test_draws_are_no_answer() -> None:
    assert read_answer(Draws((Completion("Young."),))) is None


def test_both_orders_are_averaged() -> None:
    # The masked answer is B in the first order and A in the second.
    ratings = read_verdict(verdict("### Ratings: A=8, B=5", "### Ratings: A=7, B=10"))

    assert ratings == Ratings(masked=6.0, unmasked=9.0)
    assert ratings.utility == 5 / 8


def test_a_judge_who_prefers_what_comes_first_prefers_neither() -> None:
    ratings = read_verdict(verdict("A=8, B=6", "A=8, B=6"))

    assert ratings == Ratings(masked=7.0, unmasked=7.0)


@pytest.mark.parametrize(
    ("ratings", "utility"),
    [
        (Ratings(masked=1, unmasked=10), 0.0),
        (Ratings(masked=1, unmasked=1.5), 0.0),
        (Ratings(masked=5.5, unmasked=10), 0.5),
        (Ratings(masked=3, unmasked=5), 0.5),
        (Ratings(masked=10, unmasked=10), 1.0),
        (Ratings(masked=9, unmasked=4), 1.0),
        (Ratings(masked=1, unmasked=1), 1.0),
    ],
)
def test_the_share_that_the_masked_answer_keeps(ratings: Ratings, utility: float) -> None:
    assert ratings.utility == utility


@pytest.mark.parametrize(
    "text",
    [
        "### Ratings: A=7, B=9",
        "Both are fine.\n\n### Ratings: A=7, B=9",
        "**Ratings:** A = 7; B = 9.",
        "A: 7/10\nB: 9/10",
        "Answer A: **7**\nAnswer B: **9**",
        "A=7 and B=9",
        "<think>A=1, B=1</think>A=7, B=9",
        "First I thought A=2, B=3. ### Ratings: A=7, B=9",
    ],
)
def test_ratings_are_read_in_the_forms_that_models_give_them(text: str) -> None:
    assert read_verdict(verdict(text, "A=9, B=7")) == Ratings(masked=9.0, unmasked=7.0)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "A is better.",
        "### Ratings: A=7",
        "### Ratings: B=9, A=7",
        "A=0, B=9",
        "A=7, B=11",
        "A=7, B=100",
        "A=7.5, B=9",
        "A=7, B=8.5",
        "A=7, B=9/100",
        "A=seven, B=nine",
        "### Ratings: A=..., B=...",
        "<think>A=7, B=9",
    ],
)
def test_a_verdict_without_ratings_is_none(text: str) -> None:
    assert read_verdict(verdict("A=7, B=9", text)) is None
    assert read_verdict(verdict(text, "A=7, B=9")) is None


def test_one_order_is_no_verdict() -> None:
    assert read_verdict(Completion("A=7, B=9")) is None
    assert read_verdict(Draws((Completion("A=7, B=9"),))) is None
