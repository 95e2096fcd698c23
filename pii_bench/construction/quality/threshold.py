"""Trivial systems that give each choice a score and take those above a threshold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from pii_bench.construction.quality.shortcuts import macro_f1

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from pii_bench.construction.quality.shortcuts import Choice, Question

INSTALL: Final = "pip install 'pii-bench[build]'"

_CANDIDATES: Final = 101


class ChoiceScorer(Protocol):
    """Says how likely a query needs each choice."""

    def fit(self, train: Sequence[Question]) -> None:
        """Learn from train."""

    def score(self, query: str, choices: Sequence[Choice]) -> NDArray[np.float64]:
        """One number per choice, of which there is at least one; a higher one is likelier."""


@dataclass(slots=True)
class AboveThreshold:
    """Chooses what reaches a threshold, or else the best: E_q is never empty.

    Attributes:
        name: as reports write it.
        scorer: gives the scores.
        threshold: of 101 quantiles of all scores on dev, the one with the best macro F1 there.
    """

    name: str
    scorer: ChoiceScorer
    threshold: float = 0.0

    def fit(self, train: Sequence[Question], dev: Sequence[Question]) -> None:
        """Fit the scorer on train and the threshold on dev."""
        import numpy as np

        self.scorer.fit(train)
        asked = [question for question in dev if question.choices]
        if not asked:
            return
        scores = [self.scorer.score(question.query, question.choices) for question in asked]

        def dev_f1(threshold: float) -> float:
            predicted = (
                _reaching(threshold, own, question.choices)
                for question, own in zip(asked, scores, strict=True)
            )
            return macro_f1(asked, predicted)

        candidates = np.quantile(np.concatenate(scores), np.linspace(0, 1, _CANDIDATES))
        self.threshold = max(candidates.tolist(), key=dev_f1)

    def predict(self, query: str, choices: Sequence[Choice]) -> list[str]:
        """Those that reach the threshold, or the best one."""
        if not choices:
            return []
        return _reaching(self.threshold, self.scorer.score(query, choices), choices)


def _reaching(
    threshold: float, scores: NDArray[np.float64], choices: Sequence[Choice]
) -> list[str]:
    least = min(threshold, scores.max())
    return [choice.text for choice, score in zip(choices, scores, strict=True) if score >= least]
