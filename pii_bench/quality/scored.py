"""Trivial systems that give each choice a score and choose those above a threshold."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol, Self

from pii_bench.errors import MissingExtraError
from pii_bench.quality.shortcuts import choices_of, macro_f1

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from pii_bench.datasets.sample import Sample
    from pii_bench.quality.shortcuts import Choice

    Scores = NDArray[np.float64]

_INSTALL: Final = "pip install 'pii-bench[build]'"
_STEPS: Final = 101
_CLAUSE_END: Final = re.compile(r"[.,;:?!()–—]+|\b(?:and|or|but)\b", re.IGNORECASE)
_SENTENCE_END: Final = re.compile(r"(?<=[.?!])\s+")
# A person is named by the order in which the sample lists them; hard cases have two.
_SUBJECTS: Final = 2


class ChoiceScorer(Protocol):
    """Says how likely the query needs each choice."""

    def fit(self, train: Sequence[Sample]) -> None:
        """Learn from train."""

    def score(self, query: str, choices: Sequence[Choice]) -> Scores:
        """One score per choice; a higher one is likelier."""


@dataclass(slots=True)
class AboveThreshold:
    """Chooses what scores at least a threshold, or else the best: E_q is never empty.

    Attributes:
        name: as reports write it.
        scorer: gives the scores.
        threshold: the one of 101 quantiles of the scores on dev that is best there.
    """

    name: str
    scorer: ChoiceScorer
    threshold: float = 0.0

    def fit(self, train: Sequence[Sample], dev: Sequence[Sample]) -> Self:
        """Fit the scorer on train and the threshold on dev."""
        import numpy as np

        self.scorer.fit(train)
        scores = {
            sample.query: self.scorer.score(sample.query, choices)
            for sample in dev
            if sample.query is not None and (choices := choices_of(sample))
        }
        if not scores:
            return self

        def dev_f1(threshold: float) -> float:
            return macro_f1(
                dev, lambda query, choices: _above(threshold, scores.get(query), choices)
            )

        candidates = np.quantile(np.concatenate([*scores.values()]), np.linspace(0, 1, _STEPS))
        self.threshold = max(candidates.tolist(), key=dev_f1)
        return self
