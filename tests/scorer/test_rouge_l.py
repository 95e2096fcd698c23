from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from rouge_score.rouge_scorer import RougeScorer

from pii_bench.scorer.counts import PRF
from pii_bench.scorer.rouge_l import score_entities, score_texts, similarity
from pii_bench.scorer.text import tokens

ROUGE_SCORE = RougeScorer(["rougeL"], use_stemmer=False)

any_ascii = st.text(st.characters(max_codepoint=127), max_size=30)
few_words = st.lists(st.sampled_from(["a", "B", "cat", "Cat", "9", "?"]), max_size=8).map(" ".join)
ascii_texts = any_ascii | few_words


@given(ascii_texts, ascii_texts)
def test_ascii_texts_score_as_in_rouge_score(gold: str, predicted: str) -> None:
    # Equal texts without a token are 0 there, and 1 by the spec.
    assume(tokens(gold) or gold != predicted)

    expected = ROUGE_SCORE.score(gold, predicted)["rougeL"].fmeasure

    assert similarity(predicted, gold) == pytest.approx(expected, abs=1e-12)


@given(st.text())
def test_equal_texts_are_alike(text: str) -> None:
    assert similarity(text, text) == 1.0


@given(st.text(), st.text())
def test_similarity_has_no_direction(a: str, b: str) -> None:
    assert similarity(a, b) == similarity(b, a)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ("Global Health Institute", "Global Health", 2 * 2 / 5),
        ("Global Health", "health global", 2 * 1 / 4),  # order counts
        ("ANN LEE", "Ann Lee", 1.0),  # case does not
        ("St. Mary's", "St Mary s", 1.0),
        ("?!", "?!", 1.0),
        ("?!", "!?", 0.0),
        ("?!", "a", 0.0),
        ("王小明", "王明", 2 * 2 / 5),
        ("김철수", "김영수", 2 * 2 / 6),
        ("Владимир Путь", "Владимир", 2 * 1 / 3),  # rouge-score: 0, no letter of a-z
    ],
)
def test_similarity(a: str, b: str, expected: float) -> None:
    assert similarity(a, b) == expected


@pytest.mark.parametrize(
    ("predicted", "gold", "expected"),
    [
        (set(), set(), PRF(1.0, 1.0, 1.0)),
        ({"a"}, set(), PRF(0.0, 0.0, 0.0)),
        (set(), {"a"}, PRF(0.0, 0.0, 0.0)),
        ({"a"}, {"b"}, PRF(0.0, 0.0, 0.0)),
        # One gold text is the best of both predictions, so R is higher than P:
        # P = (1 + 2/3) / 2 = 5/6, R = 1, F1 = 2 * 5/6 / (11/6).
        ({"a b", "a"}, {"a b"}, PRF(5 / 6, 1.0, 10 / 11)),
        # P = 2/3; R = (2/3 + 0) / 2 = 1/3; F1 = (4/9) / 1.
        ({"a"}, {"a b", "c"}, PRF(2 / 3, 1 / 3, 4 / 9)),
    ],
)
def test_texts_take_their_best_counterpart(
    predicted: set[str], gold: set[str], expected: PRF
) -> None:
    score = score_texts(predicted, gold)

    assert (score.precision, score.recall, score.f1) == pytest.approx(
        (expected.precision, expected.recall, expected.f1)
    )


def test_entities_of_different_types_are_not_alike() -> None:
    predicted = {("a b", "ORG"), ("c", "PER")}
    gold = {("a b", "LOC"), ("c", "PER")}

    assert score_entities(predicted, gold) == PRF(0.5, 0.5, 0.5)
    assert score_entities({("a", "ORG")}, {("a b", "ORG")}).f1 == pytest.approx(2 / 3)


def test_entities_on_one_side_only() -> None:
    assert score_entities(set(), set()) == PRF(1.0, 1.0, 1.0)
    assert score_entities({("a", "ORG")}, set()) == PRF(0.0, 0.0, 0.0)
    assert score_entities(set(), {("a", "ORG")}) == PRF(0.0, 0.0, 0.0)
