from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from pii_bench.construction.quality.linear import QueryWords
from pii_bench.construction.quality.shortcuts import Choice, Question
from pii_bench.errors import MissingExtraError, PiiBenchError
from tests.construction.quality.asked import ask

if TYPE_CHECKING:
    from collections.abc import Sequence


def fitted(train: Sequence[Question]) -> QueryWords:
    scorer = QueryWords()
    scorer.fit(train)
    return scorer


def test_it_learns_which_words_ask_about_which_category() -> None:
    scorer = fitted(
        [
            ask("Am I old", "32", **{"32": "Age", "Leeds": "City/Region"}),
            ask("Is it far", "Hull", **{"40": "Age", "Hull": "City/Region"}),
        ]
    )
    choices = ask("", **{"51": "Age", "York": "City/Region"}).choices

    assert scorer.score("Too old now", choices).argmax() == 0
    assert scorer.score("Too far now", choices).argmax() == 1


def test_it_learns_which_words_ask_about_whom() -> None:
    both = (Choice("32", "Age", 0), Choice("40", "Age", 1))
    scorer = fitted(
        [
            Question("my years", both, frozenset({"32"})),
            Question("her years", both, frozenset({"40"})),
        ]
    )

    assert scorer.score("my turn", both).argmax() == 0
    assert scorer.score("her turn", both).argmax() == 1


def test_neighbouring_words_count_together() -> None:
    # Each word alone stands in queries of either kind.
    categories = {"a": "Age", "b": "City/Region"}
    train = [
        ask("old town", "a", **categories),
        ask("town old", "b", **categories),
    ]
    choices = train[0].choices

    assert fitted(train).score("old town", choices).argmax() == 0
    assert fitted(train).score("town old", choices).argmax() == 1


def test_the_same_train_gives_the_same_scores() -> None:
    train = [ask(f"word{n} is here", "a", a="Age", b="Date") for n in range(20)]
    query, choices = "word3 is there", train[0].choices

    first, second = (fitted(train).score(query, choices).tolist() for _ in range(2))

    assert first == second


@pytest.mark.parametrize("needed", [("a",), ()])
def test_train_must_have_something_to_tell_apart(needed: tuple[str, ...]) -> None:
    with pytest.raises(PiiBenchError, match="needed and others that are not"):
        fitted([ask("Am I old", *needed, a="Age")])


def test_without_the_extra_the_message_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.feature_extraction", None)

    with pytest.raises(
        MissingExtraError, match=r"scikit-learn .* `pip install 'pii-bench\[build\]'`"
    ):
        QueryWords()
