from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_bench.scorer import PRF, Counts, DetectionScore, score_detection

if TYPE_CHECKING:
    from random import Random

Subjects = list[list[tuple[str, str]]]

ONE = PRF(1.0, 1.0, 1.0)
NONE = PRF(0.0, 0.0, 0.0)

ANN = [("Ann Lee", "PER"), ("Acme", "ORG"), ("32", "QUANTITY")]
BOB = [("Bob Ray", "PER"), ("Acme", "ORG")]

# Few texts and types, so that ties are common; empty subjects are dropped.
entities = st.tuples(st.sampled_from(["a", "b", "a b", "b c", "c"]), st.sampled_from("XY"))
subjects = st.lists(st.lists(entities, max_size=3), max_size=4)


def scores(score: DetectionScore) -> tuple[PRF, PRF, PRF, PRF]:
    return score.strict, score.entity, score.entity_matched, score.rouge_l


def swapped(score: PRF) -> PRF:
    return PRF(score.recall, score.precision, score.f1)


@given(subjects)
def test_gold_as_prediction_is_perfect(gold: Subjects) -> None:
    assert scores(score_detection(gold, gold)) == (ONE, ONE, ONE, ONE)


@pytest.mark.parametrize(
    ("predicted", "gold", "expected"),
    [
        ([], [], ONE),
        ([[]], [[], [(" ", "PER")]], ONE),
        ([ANN], [], NONE),
        ([], [ANN], NONE),
        ([[]], [ANN], NONE),
        (None, [ANN], NONE),
        (None, [], NONE),
    ],
)
def test_an_empty_side(predicted: Subjects | None, gold: Subjects, expected: PRF) -> None:
    score = score_detection(predicted, gold)

    assert scores(score) == (expected,) * 4
    assert score.matching == ()


def test_no_prediction_still_counts_gold() -> None:
    score = score_detection(None, [ANN, BOB])

    assert score.strict_counts == Counts(0, 0, 5)
    assert score.entity_counts == Counts(0, 0, 4)  # both work at Acme


def test_one_subject() -> None:
    score = score_detection([[("Ann Lee", "PER"), ("Acme", "LOC")]], [ANN])

    assert score.strict == PRF(1 / 2, 1 / 3, 2 / 5)
    assert score.entity == score.entity_matched == PRF(1.0, 2 / 3, 4 / 5)
    assert score.strict_counts == Counts(1, 2, 3)
    assert score.entity_counts == Counts(2, 2, 3)


@pytest.mark.parametrize(
    ("predicted", "equal"),
    [
        (("Ann  Lee\n", "PER"), True),
        (("Ann Lee", " per "), True),
        (("ann lee", "PER"), False),
        (("Ann Lee", "ORG"), False),
    ],
)
def test_equality_of_entities(predicted: tuple[str, str], equal: bool) -> None:
    assert score_detection([[predicted]], [[("Ann Lee", "PER")]]).strict == (ONE if equal else NONE)


def test_composed_and_decomposed_letters_are_equal() -> None:
    score = score_detection([[("Jose\u0301", "PER")]], [[("Jos\u00e9", "PER")]])

    assert score.strict == score.entity == ONE


def test_repeats_count_once() -> None:
    score = score_detection([[*ANN, *ANN]], [ANN])

    assert score.strict == ONE
    assert score.strict_counts == Counts(3, 3, 3)


def test_more_predicted_than_gold() -> None:
    score = score_detection([BOB, ANN], [ANN])

    assert score.matching == ((1, 0),)
    assert score.strict == score.entity_matched == score.rouge_l == PRF(1 / 2, 1.0, 1 / 2)
    # Pooled: 4 texts against 3, of which all 3 are found.
    assert score.entity == PRF(3 / 4, 1.0, 6 / 7)
    assert score.strict_counts == Counts(3, 5, 3)


def test_more_gold_than_predicted() -> None:
    score = score_detection([ANN], [BOB, ANN])

    assert score.matching == ((0, 1),)
    assert score.strict == score.entity_matched == score.rouge_l == PRF(1.0, 1 / 2, 1 / 2)
    assert score.entity == PRF(1.0, 3 / 4, 6 / 7)


def test_sums_over_the_matching() -> None:
    predicted = [[("a", "X"), ("b", "X"), ("c", "X")], [("d", "X")]]
    gold = [[("a", "X"), ("b", "X"), ("c", "X"), ("d", "X")], [("a", "X"), ("b", "X")]]

    score = score_detection(predicted, gold)

    # P: 2/3 and 1; R: 1 and 1/4; F1: 4/5 and 2/5; each over two subjects.
    assert score.matching == ((0, 1), (1, 0))
    assert score.strict.precision == pytest.approx(5 / 6)
    assert score.strict.recall == pytest.approx(5 / 8)
    assert score.strict.f1 == pytest.approx(3 / 5)
    assert score.strict_counts == Counts(3, 4, 6)
    assert score.entity == ONE


def test_entities_given_to_the_wrong_person_are_still_found() -> None:
    gold = [[("a", "X"), ("b", "X")], [("c", "X"), ("d", "X")]]
    predicted = [[("a", "X"), ("c", "X")], [("b", "X"), ("d", "X")]]

    score = score_detection(predicted, gold)

    assert score.strict.f1 == score.entity_matched.f1 == 1 / 2
    assert score.entity == ONE


def test_subjects_without_entities_keep_their_index() -> None:
    score = score_detection([[], BOB, ANN], [ANN, [("", "PER")], BOB])

    assert score.matching == ((1, 2), (2, 0))
    assert score.strict == ONE


def test_a_pair_with_nothing_in_common_is_matched() -> None:
    score = score_detection([[("a", "X")]], [[("b", "X")]])

    assert score.matching == ((0, 0),)
    assert scores(score) == (NONE,) * 4


def test_rouge_l_compares_texts_of_the_same_type_only() -> None:
    gold = [[("Global Health Institute", "ORG"), ("Leeds", "LOC")]]

    same = score_detection([[("Global Health", "ORG"), ("Leeds", "LOC")]], gold)
    other = score_detection([[("Global Health", "LOC"), ("Leeds", "LOC")]], gold)

    # The similarities 2 * 2 / 5 and 1 have the mean 9/10, on either side.
    assert same.rouge_l.f1 == pytest.approx(9 / 10)
    assert other.rouge_l.f1 == pytest.approx(1 / 2)


def test_rouge_l_of_cjk_names() -> None:
    score = score_detection([[("王明", "PER")]], [[("王小明", "PER")]])

    assert score.strict == NONE
    assert score.rouge_l.f1 == pytest.approx(4 / 5)


def test_iterables_of_any_kind() -> None:
    score = score_detection((set(ANN), iter(BOB)), [tuple(BOB), ANN])

    assert score.matching == ((0, 1), (1, 0))
    assert score.strict == ONE


def test_what_ties_on_every_level_depends_on_no_order() -> None:
    # Either prediction has F1 2/3 with the second gold, on all three levels, but
    # one with P = 1/2 and R = 1, the other with P = 1 and R = 1/2.
    long, short = [("c", "X"), ("d", "X"), ("f", "X"), ("h", "X")], [("c", "X")]
    gold = [[("b", "X")], [("c", "X"), ("f", "X")]]

    score = score_detection([long, short], gold)

    assert score.strict.f1 == pytest.approx(1 / 3)
    assert score_detection([short, long], gold).strict == score.strict
    assert score_detection([long, short], gold[::-1]).strict == score.strict
    assert score_detection(gold, [long, short]).strict == swapped(score.strict)


@given(subjects, subjects, st.randoms(use_true_random=False))
def test_the_order_of_subjects_changes_no_score(
    predicted: Subjects, gold: Subjects, random: Random
) -> None:
    again = predicted.copy(), gold.copy()
    for side in again:
        random.shuffle(side)

    before, after = score_detection(predicted, gold), score_detection(*again)

    assert scores(before) == scores(after)
    assert before.strict_counts == after.strict_counts


@given(subjects, subjects)
def test_exchanging_the_sides_exchanges_precision_and_recall(
    predicted: Subjects, gold: Subjects
) -> None:
    one_way, other_way = score_detection(predicted, gold), score_detection(gold, predicted)

    assert [swapped(score) for score in scores(one_way)] == list(scores(other_way))
