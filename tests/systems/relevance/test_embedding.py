from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_bench.systems.relevance.base import Candidate
from pii_bench.systems.relevance.candidates import NEVER
from pii_bench.systems.relevance.embedding import EmbeddingRelevance
from pii_bench.systems.relevance.encoders import WordLlamaEncoder
from pii_bench.systems.relevance.keywords import KEYWORDS_SHA256

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray


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


def test_a_blank_query_needs_all_alike() -> None:
    system = EmbeddingRelevance("fake", ByLetter(), 0.25)

    assert system.scores(" ", TEXT, [ANN, BLOOD, CITY]) == [NEVER, 0.0, 0.0]
    assert system.scores("Blood?", TEXT, []) == []


def test_encoder_and_threshold_tell_it_from_others() -> None:
    system = EmbeddingRelevance("fake", ByLetter(), 0.25)

    assert (system.name, system.threshold) == ("fake", 0.25)
    assert system.identity == {
        "encoder": "by-letter 1",
        "keywords": KEYWORDS_SHA256,
        "threshold": "0.25",
    }


@pytest.mark.parametrize(
    ("query", "best"),
    [("May I donate blood with my type?", "O+"), ("Is my town an expensive place?", "York")],
)
def test_wordllama_reads(wordllama: EmbeddingRelevance, query: str, best: str) -> None:
    candidates = [BLOOD, CITY]

    scores = wordllama.scores(query, TEXT, candidates)

    assert candidates[int(np.argmax(scores))].text == best


@given(ANY_TEXT, ANY_TEXT, ANY_TEXT.filter(bool))
def test_wordllama_scores_any_text(
    wordllama: EmbeddingRelevance, query: str, before: str, text: str
) -> None:
    candidates = [Candidate(text, "CODE", len(before)), Candidate("x", "LOC", 0)]

    scores = wordllama.scores(query, before + text, candidates)

    assert all(map(math.isfinite, scores))
    assert math.fsum(scores) == pytest.approx(0, abs=1e-6)
