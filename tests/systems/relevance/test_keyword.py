from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_bench.systems.relevance.base import NEVER, Candidate
from pii_bench.systems.relevance.keyword import (
    KEYWORDS,
    KeywordRelevance,
    clauses_around,
    content_words,
    parts_of,
)
from pii_bench.taxonomy import TYPE_OF_CATEGORY, PiiType


def clause(description: str, text: str) -> str:
    (found,) = clauses_around(description, [Candidate(text, "DEM", description.index(text))])
    return found


@pytest.mark.parametrize(
    ("description", "expected"),
    [
        ("He paints. She is 32. We left.", "She is 32"),
        ("She paints, is 32, and sings.", "is 32"),
        ("She sings and is 32 but tired.", "and is 32"),
        ('"Sit!" She is 32. "Oh."', "She is 32"),
        ("Age: 32", "32"),
        ("Form\nAge 32\nCity", "Age 32"),
        ("She – a potter – is 32", "is 32"),
        ("32", "32"),
    ],
    ids=["sentence", "commas", "and, but", "quotes", "colon", "lines", "dashes", "all"],
)
def test_a_clause_ends_at_punctuation_conjunctions_and_lines(
    description: str, expected: str
) -> None:
    assert clause(description, "32") == expected


@pytest.mark.parametrize("text", ["05:15:00", "ann@mail.example", "Black, White and Co."])
def test_a_candidate_is_never_cut(text: str) -> None:
    assert clause(f"Late, she has {text} there. Soon.", text) == f"she has {text} there"


def test_clauses_come_in_the_order_of_the_candidates() -> None:
    potter, age = Candidate("potter", "DEM", 13), Candidate("32", "DEM", 0)

    assert clauses_around("32 already, a potter", [potter, age]) == ["a potter", "32 already"]


def test_a_candidate_that_is_not_there_gets_the_clause_of_its_place() -> None:
    assert clauses_around("Born, raised.", [Candidate("in the north", "LOC", 6)]) == ["raised."]


@given(st.text(alphabet="ab ,.\n–", max_size=12), st.text(min_size=1), st.text(max_size=12))
def test_every_clause_is_a_part_of_the_text_that_holds_the_candidate(
    before: str, text: str, after: str
) -> None:
    description = before + text + after

    (found,) = clauses_around(description, [Candidate(text, "DEM", len(before))])

    assert text in found
    assert found in description


def test_parts_are_the_query_its_sentences_and_its_clauses() -> None:
    assert parts_of("My job, and my age. Too old?") == [
        "My job, and my age. Too old?",
        "My job, and my age.",
        "Too old?",
        "My job",
        "my age",
        "Too old",
    ]
    assert parts_of("Old") == ["Old"]


def test_every_category_but_names_has_one_to_six_keywords() -> None:
    expected = {name for name, pii_type in TYPE_OF_CATEGORY.items() if pii_type != PiiType.PER}

    assert set(KEYWORDS) == expected
    assert all(1 <= len(words) == len(set(words)) <= 6 for words in KEYWORDS.values())


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
        # A category of the type; in the plural and with a capital; another one; the clause's own.
        ("Which town suits her?", -1.0),
        ("Do Towns suit her?", -1.0),
        ("Is her faith common?", 1.0),
        ("May she give blood?", 1.0 + 0.5 + 0.1),
        # A shared word.
        ("Where do goats graze?", -0.1),
        ("Is it near here?", -0.1),
    ],
)
def test_cues_add_up(query: str, expected: float) -> None:
    assert gap(query) == pytest.approx(expected)


def test_scores_are_relative_and_names_have_none() -> None:
    scores = KeywordRelevance(threshold=0.0).scores("Which town?", TEXT, [ANN, BLOOD, CITY])

    assert scores == [NEVER, -0.5, 0.5]


def test_content_words() -> None:
    assert content_words("The Goats' glass is under a GOAT, as ever; gas 32") == {
        "goat",
        "glass",
        "gas",
        "32",
    }
