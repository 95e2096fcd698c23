from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_bench.errors import PiiBenchError
from pii_bench.scorer import PRF, Counts, score_masking, score_query_related

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
def test_an_empty_side(
    predicted: list[str] | None, gold: list[str], expected: PRF, counts: Counts
) -> None:
    score = score_query_related(predicted, gold)

    assert score.exact == score.rouge_l == expected
    assert score.counts == counts


def test_exact_and_rouge_l() -> None:
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
def test_equality_of_texts(predicted: list[str], f1: float) -> None:
    score = score_query_related(predicted, ["Ann Lee"])

    assert score.exact.f1 == f1
    assert score.rouge_l.f1 == 1.0  # which does not see case


@given(texts, texts)
def test_exchanging_the_sides_exchanges_precision_and_recall(a: list[str], b: list[str]) -> None:
    one_way, other_way = score_query_related(a, b), score_query_related(b, a)

    for score, other in ((one_way.exact, other_way.exact), (one_way.rouge_l, other_way.rouge_l)):
        assert (score.precision, score.recall, score.f1) == (
            other.recall,
            other.precision,
            other.f1,
        )


@given(texts, texts)
def test_similar_texts_never_score_less_than_equal_ones(a: list[str], b: list[str]) -> None:
    score = score_query_related(a, b)

    assert score.rouge_l.f1 >= score.exact.f1 - 1e-12


def test_masked_is_what_is_found_and_not_needed() -> None:
    score = score_masking(
        predicted_entities=["Ann Lee", "Leeds", "Acme"],
        predicted_related=["Leeds"],
        gold_entities=["Ann Lee", "Leeds", "32"],
        gold_related=["32"],
    )

    # {Ann Lee, Acme} against {Ann Lee, Leeds}
    assert score.exact == PRF(1 / 2, 1 / 2, 1 / 2)
    assert score.rouge_l == PRF(1 / 2, 1 / 2, 1 / 2)
    assert score.counts == Counts(1, 2, 2)


def test_masked_sets_are_taken_after_normalisation() -> None:
    score = score_masking(["Ann  Lee", "Jose\u0301"], ["Jos\u00e9"], ["Ann Lee"], [])

    assert score.exact == ONE


def test_a_related_text_that_is_no_entity_masks_nothing() -> None:
    assert score_masking(["a"], ["b"], ["a"], []).exact == ONE


def test_nothing_to_mask() -> None:
    score = score_masking(["a"], ["a"], ["b"], ["b"])

    assert score.exact == score.rouge_l == ONE
    assert score.counts == Counts(0, 0, 0)


@pytest.mark.parametrize(("found", "needed"), [(None, ["a"]), (["a"], None), (None, None)])
@pytest.mark.parametrize("gold", [["a", "b"], ["a"]])
def test_masking_needs_both_predictions(
    found: list[str] | None, needed: list[str] | None, gold: list[str]
) -> None:
    score = score_masking(found, needed, gold, ["a"])

    assert score.exact == score.rouge_l == NONE
    assert score.counts == Counts(0, 0, len(gold) - 1)


def test_one_string_is_not_an_iterable_of_texts() -> None:
    with pytest.raises(PiiBenchError, match="came as one str"):
        score_query_related("ab", ["a", "b"])
