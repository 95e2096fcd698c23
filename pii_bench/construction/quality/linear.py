"""A linear classifier on the words of the query."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from pii_bench.construction.quality.threshold import INSTALL
from pii_bench.errors import MissingExtraError, PiiBenchError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from pii_bench.construction.quality.shortcuts import Choice, Question

_WORD: Final = re.compile(r"\w+")
# Far more than there are different features, so that few share a column.
_COLUMNS: Final = 2**22


class QueryWords:
    """Scores a choice by logistic regression on the words of the query.

    A feature is present or not: each word of the query, and each pair of neighbouring words,
    once with the choice's category (is it asked about?) and once with the place of its
    subject (who is asked about?); besides, category and place alone.

    Raises:
        MissingExtraError: scikit-learn is not installed.
    """

    def __init__(self) -> None:
        try:
            from sklearn.feature_extraction import FeatureHasher
            from sklearn.linear_model import LogisticRegression
        except ImportError:
            raise MissingExtraError("scikit-learn", INSTALL) from None
        self._hasher: Any = FeatureHasher(_COLUMNS, input_type="string", alternate_sign=False)
        # This solver runs in one thread, so sums have one order.
        self._model: Any = LogisticRegression(solver="liblinear", random_state=0)

    def fit(self, train: Sequence[Question]) -> None:
        """Learn the weights.

        Raises:
            PiiBenchError: train has no choice that is needed, or none that is not.
        """
        needed = [choice.text in question.gold for question in train for choice in question.choices]
        if len(set(needed)) < 2:
            raise PiiBenchError("train must have entities that are needed and others that are not")
        rows = [row for question in train for row in _features(question.query, question.choices)]
        self._model.fit(self._hasher.transform(rows), needed)

    def score(self, query: str, choices: Sequence[Choice]) -> NDArray[np.float64]:
        """Log odds."""
        rows = self._hasher.transform(_features(query, choices))
        odds: NDArray[np.float64] = self._model.decision_function(rows)
        return odds


def _features(query: str, choices: Sequence[Choice]) -> list[list[str]]:
    words = [word.lower() for word in _WORD.findall(query)]
    terms = ["", *dict.fromkeys(words), *dict.fromkeys(map(" ".join, pairwise(words)))]
    return [
        [f"{part}: {term}" for part in (choice.category, choice.subject) for term in terms]
        for choice in choices
    ]
