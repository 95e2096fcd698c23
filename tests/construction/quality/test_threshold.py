from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pii_bench.construction.quality.threshold import AboveThreshold
from tests.construction.quality.asked import ask

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from pii_bench.construction.quality.shortcuts import Choice, Question


class ByCategory:
    """Scores a choice by the number in place of its category."""

    def __init__(self) -> None:
        self.train: Sequence[Question] = ()

    def fit(self, train: Sequence[Question]) -> None:
        self.train = train

    def score(self, query: str, choices: Sequence[Choice]) -> NDArray[np.float64]:  # noqa: ARG002
        return np.array([float(choice.category) for choice in choices])


def test_the_threshold_is_the_best_one_on_dev() -> None:
    system = AboveThreshold("numbers", ByCategory())
    # From 4 to 6 is right in both; the quantiles of 1, 4, 6, 8 have steps of 0.06 there.
    dev = [ask("", "a", a="8", b="1"), ask("", "c", c="6", d="4")]

    system.fit([], dev)

    assert 4 < system.threshold < 4.1
    assert system.predict("", ask("", e="5", f="3", g="7").choices) == ["e", "g"]


def test_where_nothing_reaches_the_threshold_the_best_is_chosen() -> None:
    system = AboveThreshold("numbers", ByCategory(), threshold=5)

    assert system.predict("", ask("", a="1", b="3", c="2").choices) == ["b"]
    assert system.predict("", ()) == []


def test_the_scorer_learns_from_train_alone() -> None:
    scorer = ByCategory()
    train, dev = [ask("one", "a", a="1")], [ask("two", "b", b="2")]

    AboveThreshold("numbers", scorer).fit(train, dev)

    assert scorer.train == train


def test_dev_without_choices_leaves_the_threshold() -> None:
    system = AboveThreshold("numbers", ByCategory(), threshold=5)

    system.fit([], [ask("")])

    assert system.threshold == 5
