from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from rouge_score.rouge_scorer import RougeScorer

from pii_bench.scorer.measures import (
    PRF,
    Counts,
    macro,
    micro,
    score_masking,
    score_query_related,
    similarity,
)
from pii_bench.scorer.text import tokens


@pytest.mark.parametrize(
    ("predicted", "gold", "expected"),
    [
        ("abc", "abcd", PRF(1.0, 3 / 4, 6 / 7)),
        ("abcd", "abc", PRF(3 / 4, 1.0, 6 / 7)),
        ("ab", "bc", PRF(1 / 2, 1 / 2, 1 / 2)),
        ("ab", "cd", PRF(0.0, 0.0, 0.0)),
    ],
)
def test_precision_recall_and_f1_of_two_sets(predicted: str, gold: str, expected: PRF) -> None:
    assert Counts.of(set(predicted), set(gold)).prf == expected


def test_macro_is_the_mean_over_samples() -> None:
    assert macro([PRF(1.0, 0.5, 0.6), PRF(0.0, 0.5, 0.0)]) == PRF(0.5, 0.5, 0.3)
    assert macro([]) is None


def test_micro_sums_counts_and_divides_once() -> None:
    assert micro([Counts(1, 1, 1), Counts(1, 3, 1)]) == PRF(2 / 4, 2 / 2, 2 / 3)
    assert micro([Counts(0, 0, 3)]) == PRF(0.0, 0.0, 0.0)
    assert micro([Counts(0, 0, 0)]) is None
    assert micro([]) is None


ROUGE_SCORE = RougeScorer(["rougeL"], use_stemmer=False)

any_ascii = st.text(st.characters(max_codepoint=127), max_size=30)
few_words = st.lists(st.sampled_from(["a", "B", "cat", "Cat", "9", "?"]), max_size=8).map(" ".join)
ascii_texts = any_ascii | few_words


@given(ascii_texts, ascii_texts)
def test_similarity_of_ascii_texts_equals_rouge_score(gold: str, predicted: str) -> None:
    # rouge-score gives 0 to equal texts without a token.
    assume(tokens(gold) or gold != predicted)

    expected = ROUGE_SCORE.score(gold, predicted)["rougeL"].fmeasure

    assert similarity(predicted, gold) == pytest.approx(expected, abs=1e-12)


@given(st.text())
def test_equal_texts_have_similarity_1(text: str) -> None:
    assert similarity(text, text) == 1.0


@given(st.text(), st.text())
def test_similarity_is_symmetric(a: str, b: str) -> None:
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
def test_similarity_of_two_texts(a: str, b: str, expected: float) -> None:
    assert similarity(a, b) == expected


@pytest.mark.parametrize(
    ("predicted", "gold", "expected"),
    [
        ({"a"}, {"b"}, PRF(0.0, 0.0, 0.0)),
        # One gold text is the best of both predictions, so R is higher than P:
        # P = (1 + 2/3) / 2 = 5/6, R = 1, F1 = 2 * 5/6 / (11/6).
        ({"a b", "a"}, {"a b"}, PRF(5 / 6, 1.0, 10 / 11)),
        # P = 2/3; R = (2/3 + 0) / 2 = 1/3; F1 = (4/9) / 1.
        ({"a"}, {"a b", "c"}, PRF(2 / 3, 1 / 3, 4 / 9)),
    ],
)
def test_rouge_l_is_the_mean_best_similarity(
    predicted: set[str], gold: set[str], expected: PRF
) -> None:
    score = score_query_related(predicted, gold).rouge_l

    assert (score.precision, score.recall, score.f1) == pytest.approx(
        (expected.precision, expected.recall, expected.f1)
    )


ONE = PRF(1.0, 1.0, 1.0)
NONE = PRF(0.0, 0.0, 0.0)

texts = st.lists(st.sampled_from(["a", "b", "a b", "b c", "c", "?"]), max_size=4)


@pytest.mark.parametrize(
    ("predicted", "gold", "expected", "counts"),
    [
        ([], [], ONE, Counts(0, 0, 0)),
        ([" "], [""], ONE, Counts(0, 0, 0)),
        (["a"], [], NONE, Counts(0, 1, 0)),
        ([], ["a"], NONE, Counts(0, 0, 1)),
        (None, ["a"], NONE, Counts(0, 0, 1)),
        (None, [], NONE, Counts(0, 0, 0)),
    ],
)
def test_scores_with_an_empty_side(
    predicted: list[str] | None, gold: list[str], expected: PRF, counts: Counts
) -> None:
    score = score_query_related(predicted, gold)

    assert score.exact == score.rouge_l == expected
    assert score.counts == counts


def test_exact_and_rouge_l_scores() -> None:
    score = score_query_related(["Leeds", "Global Health"], ["Leeds", "Global Health Institute"])

    assert score.exact == PRF(1 / 2, 1 / 2, 1 / 2)
    assert score.rouge_l.f1 == pytest.approx((1 + 4 / 5) / 2)
    assert score.counts == Counts(1, 2, 2)


@pytest.mark.parametrize(
    ("predicted", "f1"),
    [
        (["Ann  Lee"], 1.0),
        (["Ann Lee", " Ann Lee"], 1.0),
        (["ANN LEE"], 0.0),
    ],
)
def test_texts_are_compared_after_normalisation(predicted: list[str], f1: float) -> None:
    score = score_query_related(predicted, ["Ann Lee"])

    assert score.exact.f1 == f1
    assert score.rouge_l.f1 == 1.0  # ignores case


@given(texts, texts)
def test_swapping_the_sides_swaps_precision_and_recall(a: list[str], b: list[str]) -> None:
    one_way, other_way = score_query_related(a, b), score_query_related(b, a)

    for score, other in ((one_way.exact, other_way.exact), (one_way.rouge_l, other_way.rouge_l)):
        assert (score.precision, score.recall, score.f1) == (
            other.recall,
            other.precision,
            other.f1,
        )


@given(texts, texts)
def test_rouge_l_is_never_below_exact(a: list[str], b: list[str]) -> None:
    score = score_query_related(a, b)

    assert score.rouge_l.f1 >= score.exact.f1 - 1e-12


@pytest.mark.parametrize(
    ("entities", "related", "gold", "gold_related", "f1", "matched"),
    [
        # {Ann Lee, Acme} against {Ann Lee, Leeds}
        (["Ann Lee", "Leeds", "Acme"], ["Leeds"], ["Ann Lee", "Leeds", "32"], ["32"], 1 / 2, 1),
        (["Ann  Lee", "Jose\u0301"], ["Jos\u00e9"], ["Ann Lee"], [], 1.0, 1),
        # A related text that is no entity changes nothing.
        (["a"], ["b"], ["a"], [], 1.0, 1),
        # There is nothing to mask.
        (["a"], ["a"], ["b"], ["b"], 1.0, 0),
    ],
)
def test_masked_texts_are_entities_without_related_ones(
    entities: list[str],
    related: list[str],
    gold: list[str],
    gold_related: list[str],
    f1: float,
    matched: int,
) -> None:
    score = score_masking(entities, related, gold, gold_related)

    assert score.exact == score.rouge_l == PRF(f1, f1, f1)
    assert score.counts.matched == matched


@pytest.mark.parametrize(("entities", "related"), [(None, ["a"]), (["a"], None), (None, None)])
@pytest.mark.parametrize("gold", [["a", "b"], ["a"]])
def test_masking_needs_both_predictions(
    entities: list[str] | None, related: list[str] | None, gold: list[str]
) -> None:
    score = score_masking(entities, related, gold, ["a"])

    assert score.exact == score.rouge_l == NONE
    assert score.counts == Counts(0, 0, len(gold) - 1)
