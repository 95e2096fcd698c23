"""Categories by how near their names are to the query, in a space of word embeddings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pii_bench.construction.quality.threshold import INSTALL
from pii_bench.errors import MissingExtraError
from pii_bench.systems.relevance.context import parts_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from pii_bench.construction.quality.shortcuts import Choice, Question


class CategoryNames:
    """Scores a choice by its category's name: the cosine to the nearest part of the query.

    Parts are the query, its sentences and its clauses. The embeddings are WordLlama's, whose
    weights come with the package.

    Raises:
        MissingExtraError: WordLlama is not installed.
    """

    def __init__(self) -> None:
        try:
            import wordllama
        except ImportError:
            raise MissingExtraError("WordLlama", INSTALL) from None
        folder = Path(wordllama.__file__).parent
        self._model: Any = wordllama.WordLlama.load(cache_dir=folder, disable_download=True)

    def fit(self, train: Sequence[Question]) -> None:
        """Nothing to learn."""

    def score(self, query: str, choices: Sequence[Choice]) -> NDArray[np.float64]:
        """Cosines, from -1 to 1."""
        parts = self._model.embed(parts_of(query), norm=True)
        names = self._model.embed([choice.category for choice in choices], norm=True)
        nearest: NDArray[np.float64] = (names @ parts.T).max(axis=1).astype("float64")
        return nearest
