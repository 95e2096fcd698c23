"""Relevance by embeddings of the query, of the clause around a candidate, and of categories."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pii_bench.systems.relevance.candidates import relative_scores
from pii_bench.systems.relevance.context import clauses_around, parts_of
from pii_bench.systems.relevance.keywords import KEYWORDS, KEYWORDS_SHA256
from pii_bench.taxonomy import CATEGORIES, PiiType

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from pii_bench.systems.relevance.base import Candidate
    from pii_bench.systems.relevance.encoders import Encoder

# Cosines of a clause and categories differ by about as much.
_TEMPERATURE: Final = 0.1


class EmbeddingRelevance:
    """Scores a candidate by how near the query is to what the candidate may be (`Relevance`).

    A category is the mean vector of its name and its keywords (`quality.keywords.KEYWORDS`).
    What a candidate may be: a softmax, at temperature 0.1, over the categories of its type by
    the cosine to the clause around the candidate. How near a category is: the mean of the
    cosines to the whole query and to the nearest of its parts (`parts_of`). The score is the
    expected nearness, relative to its mean over the candidates.

    A clause alone says too little: distant queries share no wording with the description.

    Args:
        name: as results write it.
        encoder: gives the vectors.
        threshold: the least score of a needed entity.
    """

    def __init__(self, name: str, encoder: Encoder, threshold: float) -> None:
        self.name = name
        self.threshold = threshold
        self._encoder = encoder
        self._categories: dict[PiiType, NDArray[np.float32]] = {
            pii_type: _unit([encoder.embed([name, *KEYWORDS[name]]).mean(axis=0) for name in names])
            for pii_type, names in CATEGORIES.items()
            if pii_type != PiiType.PER
        }

    @property
    def identity(self) -> Mapping[str, str]:
        """The encoder's, the keywords, and the threshold."""
        return {
            **self._encoder.identity,
            "keywords": KEYWORDS_SHA256,
            "threshold": repr(self.threshold),
        }

    def scores(self, query: str, description: str, candidates: Sequence[Candidate]) -> list[float]:
        """One score per candidate; all are alike for a blank query."""
        parts = parts_of(query)

        def score(others: Sequence[Candidate]) -> list[float]:
            if not parts:
                return [0.0] * len(others)
            # Apart, for an encoder pads all texts of a call to the longest.
            asked = self._encoder.embed(parts)
            around = self._encoder.embed(clauses_around(description, others))
            near = {name: _nearness(rows, asked) for name, rows in self._categories.items()}
            return [
                _expected(near[pii_type], self._categories[pii_type] @ clause)
                for pii_type, clause in zip(
                    (PiiType(candidate.type) for candidate in others), around, strict=True
                )
            ]

        return relative_scores(candidates, score)


def _nearness(categories: NDArray[np.float32], parts: NDArray[np.float32]) -> NDArray[np.float32]:
    # The first part is the whole query.
    cosines = categories @ parts.T
    nearness: NDArray[np.float32] = (cosines[:, 0] + cosines.max(axis=1)) / 2
    return nearness


def _expected(nearness: NDArray[np.float32], likeness: NDArray[np.float32]) -> float:
    import numpy as np

    weights = np.exp((likeness - likeness.max()) / _TEMPERATURE)
    return float(weights @ nearness / weights.sum())


def _unit(vectors: Sequence[NDArray[np.float32]]) -> NDArray[np.float32]:
    import numpy as np

    stacked = np.stack(vectors)
    unit: NDArray[np.float32] = stacked / np.linalg.norm(stacked, axis=1, keepdims=True)
    return unit
