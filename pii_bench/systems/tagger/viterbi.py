"""The best label sequence, without torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Transitions:
    """What a conditional random field adds to the emissions.

    Attributes:
        start: score of each label as the first, shape (labels,).
        pairs: score of column behind row, shape (labels, labels).
        end: score of each label as the last, shape (labels,).
    """

    start: NDArray[np.float32]
    pairs: NDArray[np.float32]
    end: NDArray[np.float32]


def best_labels(emissions: NDArray[np.float32], transitions: Transitions) -> list[int]:
    """The label sequence of the largest score; of equals the one of lower labels at the end.

    Args:
        emissions: shape (tokens, labels); no tokens give no labels.
        transitions: of the same labels.
    """
    if not len(emissions):
        return []
    score = transitions.start + emissions[0]
    # Row by label, column by the label before: the maximum runs along memory.
    into = np.ascontiguousarray(transitions.pairs.T)
    # A byte holds a label: a text of millions of tokens has as many rows.
    origins = np.empty(emissions.shape, np.uint8)
    for place in range(1, len(emissions)):
        paths = into + score
        origins[place] = paths.argmax(axis=1)
        score = paths.max(axis=1) + emissions[place]
    label = int((score + transitions.end).argmax())
    labels = [label]
    for place in range(len(emissions) - 1, 0, -1):
        label = int(origins[place, label])
        labels.append(label)
    return labels[::-1]
