from __future__ import annotations

from itertools import pairwise, product
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_numpy

from pii_bench.systems.tagger.viterbi import Transitions, best_labels

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Eighths add up without rounding, so that equal sums are equal.
EIGHTHS = st.integers(-80, 80).map(lambda eighths: eighths / 8)


def total(labels: tuple[int, ...], emissions: NDArray[np.float32], scores: Transitions) -> float:
    own = sum(float(emissions[place, label]) for place, label in enumerate(labels))
    steps = sum(float(scores.pairs[step]) for step in pairwise(labels))
    return float(scores.start[labels[0]]) + own + steps + float(scores.end[labels[-1]])


@given(st.data(), st.integers(1, 3), st.integers(1, 5))
def test_no_other_sequence_scores_higher(data: st.DataObject, labels: int, tokens: int) -> None:
    def draw(*shape: int) -> NDArray[np.float32]:
        drawn: NDArray[np.float32] = data.draw(st_numpy.arrays(np.float32, shape, elements=EIGHTHS))
        return drawn

    emissions = draw(tokens, labels)
    scores = Transitions(draw(labels), draw(labels, labels), draw(labels))

    best = tuple(best_labels(emissions, scores))

    others = product(range(labels), repeat=tokens)
    assert len(best) == tokens
    assert total(best, emissions, scores) == max(
        total(other, emissions, scores) for other in others
    )


def test_a_forbidden_step_is_not_taken_for_a_better_emission() -> None:
    pairs = np.array([[0, -1e4], [0, 0]], np.float32)
    scores = Transitions(np.zeros(2, np.float32), pairs, np.zeros(2, np.float32))

    # One by one 0 then 1 would win with 7; that step is forbidden, and 1, 1 has 6.
    assert best_labels(np.array([[2, 1], [0, 5]], np.float32), scores) == [1, 1]


@pytest.mark.parametrize("tokens", [0, 1])
def test_few_tokens(tokens: int) -> None:
    nothing = np.zeros(2, np.float32)
    scores = Transitions(nothing, np.zeros((2, 2), np.float32), np.array([0, 1], np.float32))

    assert best_labels(np.zeros((tokens, 2), np.float32), scores) == [1] * tokens
