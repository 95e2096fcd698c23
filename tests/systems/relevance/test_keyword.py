from __future__ import annotations

import pytest

from pii_bench.systems.relevance.base import Candidate
from pii_bench.systems.relevance.candidates import NEVER
from pii_bench.systems.relevance.keyword import KeywordRelevance, words_of_meaning

TEXT = "Ann Lee has the blood group O+. She keeps goats near York."
ANN, BLOOD, CITY = (
    Candidate(text, kind, TEXT.index(text))
    for text, kind in (("Ann Lee", "PER"), ("O+", "DEM"), ("York", "LOC"))
)


def gap(query: str) -> float:
    """How far O+ is above York."""
    blood, city = KeywordRelevance(threshold=0.0).scores(query, TEXT, [BLOOD, CITY])
    return blood - city


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("Why is that?", 0.0),
        ("Which town suits her?", -1.0),
        ("Do Towns suit her?", -1.0),
        ("Is her faith common?", 1.0),
        ("May she give blood?", 1.0 + 0.5 + 0.1),
        ("Where do goats graze?", -0.1),
        ("Is it near here?", -0.1),
    ],
    ids=[
        "no cue",
        "a category of the type",
        "plural, capital",
        "another category of the type",
        "the clause's own category",
        "a shared word",
        "another shared word",
    ],
)
def test_cues_add_up(query: str, expected: float) -> None:
    assert gap(query) == pytest.approx(expected)


def test_scores_are_relative_and_names_have_none() -> None:
    scores = KeywordRelevance(threshold=0.0).scores("Which town?", TEXT, [ANN, BLOOD, CITY])

    assert scores == [NEVER, -0.5, 0.5]


def test_words_of_meaning() -> None:
    assert words_of_meaning("The Goats' glass is under a GOAT, as ever; gas 32") == {
        "goat",
        "glass",
        "gas",
        "32",
    }


def test_no_candidates_have_no_scores() -> None:
    assert KeywordRelevance(threshold=0.0).scores("Which town?", TEXT, []) == []
