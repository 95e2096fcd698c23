from __future__ import annotations

from fractions import Fraction
from itertools import permutations
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pii_bench.scorer import PRF, Counts, DetectionScore, score_detection
from pii_bench.scorer.detection import Subject, match
from pii_bench.scorer.measures import rouge_l_of_entities

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence, Set
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
def test_scores_with_an_empty_side(
    predicted: Subjects | None, gold: Subjects, expected: PRF
) -> None:
    score = score_detection(predicted, gold)

    assert scores(score) == (expected,) * 4
    assert score.matching == ()


def test_gold_is_counted_without_a_prediction() -> None:
    score = score_detection(None, [ANN, BOB])

    assert score.strict_counts == Counts(0, 0, 5)
    assert score.entity_counts == Counts(0, 0, 4)  # both work at Acme


def test_scores_of_one_subject() -> None:
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
def test_entities_are_compared_after_normalisation(predicted: tuple[str, str], equal: bool) -> None:
    assert score_detection([[predicted]], [[("Ann Lee", "PER")]]).strict == (ONE if equal else NONE)


def test_repeats_count_once() -> None:
    score = score_detection([[*ANN, *ANN]], [ANN])

    assert score.strict == ONE
    assert score.strict_counts == Counts(3, 3, 3)


def test_spare_predicted_subjects_lower_precision() -> None:
    score = score_detection([BOB, ANN], [ANN])

    assert score.matching == ((1, 0),)
    assert score.strict == score.entity_matched == score.rouge_l == PRF(1 / 2, 1.0, 1 / 2)
    # Pooled: 4 texts against 3, of which all 3 are found.
    assert score.entity == PRF(3 / 4, 1.0, 6 / 7)
    assert score.strict_counts == Counts(3, 5, 3)


def test_scores_are_sums_over_the_matching() -> None:
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


def test_entity_score_ignores_subjects() -> None:
    gold = [[("a", "X"), ("b", "X")], [("c", "X"), ("d", "X")]]
    predicted = [[("a", "X"), ("c", "X")], [("b", "X"), ("d", "X")]]

    score = score_detection(predicted, gold)

    assert score.strict.f1 == score.entity_matched.f1 == 1 / 2
    assert score.entity == ONE


def test_subjects_without_entities_keep_their_index() -> None:
    score = score_detection([[], BOB, ANN], [ANN, [("", "PER")], BOB])

    assert score.matching == ((1, 2), (2, 0))
    assert score.strict == ONE


def test_rouge_l_compares_texts_of_the_same_type_only() -> None:
    gold = [[("Global Health Institute", "ORG"), ("Leeds", "LOC")]]

    same = score_detection([[("Global Health", "ORG"), ("Leeds", "LOC")]], gold)
    other = score_detection([[("Global Health", "LOC"), ("Leeds", "LOC")]], gold)

    # The similarities 2 * 2 / 5 and 1 have the mean 9/10, on either side.
    assert same.rouge_l.f1 == pytest.approx(9 / 10)
    assert other.rouge_l.f1 == pytest.approx(1 / 2)


def test_any_iterable_is_accepted() -> None:
    score = score_detection((set(ANN), iter(BOB)), [tuple(BOB), ANN])

    assert score.matching == ((0, 1), (1, 0))
    assert score.strict == ONE


def test_order_changes_no_score_in_a_tie_on_every_level() -> None:
    # Both predictions have F1 2/3 with the second gold on all three levels, but one with P = 1/2
    # and R = 1, the other with P = 1 and R = 1/2.
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
    shuffled = predicted.copy(), gold.copy()
    for side in shuffled:
        random.shuffle(side)

    before, after = score_detection(predicted, gold), score_detection(*shuffled)

    assert scores(before) == scores(after)
    assert before.strict_counts == after.strict_counts


@given(subjects, subjects)
def test_swapping_the_sides_swaps_precision_and_recall(predicted: Subjects, gold: Subjects) -> None:
    one_way, other_way = score_detection(predicted, gold), score_detection(gold, predicted)

    assert [swapped(score) for score in scores(one_way)] == list(scores(other_way))


Sums = tuple[Fraction, Fraction, float]

some_subjects = st.lists(st.sets(entities, min_size=1, max_size=3).map(Subject.of), max_size=4)


def subject(*texts: str, kind: str = "X") -> Subject:
    return Subject.of((text, kind) for text in texts)


def exact_f1(a: Set[object], b: Set[object]) -> Fraction:
    return Fraction(2 * len(a & b), len(a) + len(b))


def sums(pairs: Sequence[tuple[Subject, Subject]]) -> Sums:
    """Return the sums of strict, entity-only and fuzzy F1, the last rounded."""
    return (
        sum((exact_f1(p.entities, g.entities) for p, g in pairs), Fraction()),
        sum((exact_f1(p.texts, g.texts) for p, g in pairs), Fraction()),
        round(sum(rouge_l_of_entities(p.entities, g.entities).f1 for p, g in pairs), 12),
    )


@settings(max_examples=400)
@given(some_subjects, some_subjects)
def test_no_assignment_is_better(predicted: list[Subject], gold: list[Subject]) -> None:
    if len(predicted) <= len(gold):
        assignments = [
            list(zip(predicted, p, strict=False)) for p in permutations(gold, len(predicted))
        ]
    else:
        assignments = [list(zip(p, gold, strict=False)) for p in permutations(predicted, len(gold))]

    pairs = match(predicted, gold)

    assert sums([(predicted[i], gold[j]) for i, j in pairs]) == max(map(sums, assignments))


@given(some_subjects, some_subjects)
def test_the_shorter_side_is_matched_in_full(predicted: list[Subject], gold: list[Subject]) -> None:
    pairs = match(predicted, gold)

    assert len(pairs) == min(len(predicted), len(gold))
    assert len({i for i, _ in pairs}) == len({j for _, j in pairs}) == len(pairs)
    assert list(pairs) == sorted(pairs)


def test_large_subjects_with_nothing_in_common_hide_no_tie() -> None:
    # Strictly, {0: 0, 1: 1} and {0: 1, 1: 0} sum to 1/5 + 2/5 and 3/5 + 0; entity-only to 1 and
    # 3/5. The sizes of the others have a common multiple beyond 2**53.
    predicted = [
        subject("w0", "w1", "w2", "w3", "w5", "w6"),
        subject("w4"),
        *(subject(*(f"p{size}-{k}" for k in range(size))) for size in (28, 9, 33)),
    ]
    gold = [
        Subject.of([("w0", "X"), ("w5", "Y"), ("w6", "Y"), ("w7", "Y")]),
        subject("w1", "w2", "w3", "w4"),
        *(subject(*(f"g{size}-{k}" for k in range(size))) for size in (16, 25, 34)),
    ]

    assert match(predicted, gold)[:2] == ((0, 0), (1, 1))


def test_breaking_a_tie_never_lowers_an_earlier_level() -> None:
    # Strictly, i to i and i to i + 1 are worth 1/4 each, so both rings of three sum to
    # 3/4. Entity-only, 0 to 0 and 1 to 2 are worth 3/4 each, but 2 to 1 is worth nothing.
    predicted = [
        subject("a", "b", "u1", "u2"),
        subject("b", "c", "v1", "v2"),
        subject("c", "a", "w1", "w2"),
    ]
    gold = [
        Subject.of([("a", "X"), ("u1", "Y"), ("u2", "Y"), ("x", "X")]),
        subject("b", "y1", "y2", "y3"),
        Subject.of([("c", "X"), ("v1", "Y"), ("v2", "Y"), ("z", "X")]),
    ]

    assert match(predicted, gold) in {((0, 0), (1, 1), (2, 2)), ((0, 1), (1, 2), (2, 0))}


def test_breaking_a_tie_keeps_a_subject_that_every_optimum_needs() -> None:
    # Strictly, only the middle gold is worth something: 1/2 with either prediction.
    # Entity-only, the outer ones are worth 2/3 and 1, yet both at once lose the 1/2.
    predicted = [subject("a"), subject("b")]
    gold = [
        subject("a", "z", kind="Y"),
        subject("a", "b", "c"),
        subject("b", kind="Y"),
    ]

    assert match(predicted, gold) == ((0, 1), (1, 2))


GOLD = [subject("Ann Lee", "32"), subject("Bob Ray", "41")]


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(lambda i: subject(f"x{i}"), id="nothing in common"),
        pytest.param(lambda i: subject(f"Ann {i}"), id="a token in common"),
        pytest.param(lambda i: subject("32", f"x{i}"), id="an entity in common"),
        pytest.param(lambda _: subject("32", "41"), id="all equal"),
    ],
)
def test_thousands_of_other_subjects_do_not_change_the_matching(
    other: Callable[[int], Subject],
) -> None:
    predicted = [*GOLD, *map(other, range(2300))]

    assert match(predicted, GOLD) == ((0, 0), (1, 1))
    assert match(GOLD, predicted) == ((0, 0), (1, 1))


def test_hundreds_of_tied_subjects_on_both_sides_are_matched() -> None:
    predicted = [subject(f"a{i}") for i in range(300)]
    gold = [subject(f"b{i}") for i in range(400)]

    assert len(match(predicted, gold)) == 300


def test_denominators_beyond_float64_do_not_overflow() -> None:
    # The least common multiple of the 20 sums of two sizes has 46 digits.
    gold = [subject(*(f"{j}-{k}" for k in range(150 + 61 * j))) for j in range(20)]
    predicted = [subject(*(f"{i}-{k}" for k in range(40 + 11 * i))) for i in range(20)]

    assert match(predicted, gold) == tuple((i, i) for i in range(20))
