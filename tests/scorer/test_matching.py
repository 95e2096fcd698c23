from __future__ import annotations

from fractions import Fraction
from itertools import permutations
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pii_bench.scorer.matching import Subject, match
from pii_bench.scorer.rouge_l import score_entities

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence, Set

Sums = tuple[Fraction, Fraction, float]

# Few texts and types, so that ties on every level are common.
entities = st.tuples(st.sampled_from(["a", "b", "a b", "b c", "c"]), st.sampled_from("XY"))
subjects = st.lists(st.sets(entities, min_size=1, max_size=3).map(Subject.of), max_size=4)


def subject(*texts: str, kind: str = "X") -> Subject:
    return Subject.of((text, kind) for text in texts)


def exact_f1(a: Set[object], b: Set[object]) -> Fraction:
    return Fraction(2 * len(a & b), len(a) + len(b))


def sums(pairs: Sequence[tuple[Subject, Subject]]) -> Sums:
    """Strict, entity-only and fuzzy F1 of an assignment; the last to 12 digits."""
    return (
        sum((exact_f1(p.entities, g.entities) for p, g in pairs), Fraction()),
        sum((exact_f1(p.texts, g.texts) for p, g in pairs), Fraction()),
        round(sum(score_entities(p.entities, g.entities).f1 for p, g in pairs), 12),
    )


@settings(max_examples=400)
@given(subjects, subjects)
def test_no_assignment_is_better(predicted: list[Subject], gold: list[Subject]) -> None:
    if len(predicted) <= len(gold):
        assignments = [
            list(zip(predicted, p, strict=False)) for p in permutations(gold, len(predicted))
        ]
    else:
        assignments = [list(zip(p, gold, strict=False)) for p in permutations(predicted, len(gold))]

    found = match(predicted, gold)

    assert sums([(predicted[i], gold[j]) for i, j in found]) == max(map(sums, assignments))


@given(subjects, subjects)
def test_the_shorter_side_is_matched_in_full(predicted: list[Subject], gold: list[Subject]) -> None:
    found = match(predicted, gold)

    assert len(found) == min(len(predicted), len(gold))
    assert len({i for i, _ in found}) == len({j for _, j in found}) == len(found)
    assert list(found) == sorted(found)


def test_the_sum_decides_not_the_best_pair() -> None:
    predicted = [subject("a", "b", "c"), subject("d")]
    gold = [subject("a", "b", "c", "d"), subject("a", "b")]

    # 6/7 + 0 against 4/5 + 2/5
    assert match(predicted, gold) == ((0, 1), (1, 0))


# In each row both golds tie with the one prediction on the levels before, and
# the second gold wins.
@pytest.mark.parametrize(
    ("predicted", "worse", "better"),
    [
        pytest.param(
            # strict 0 against 1/2, although entity-only is 1 against 1/2
            subject("a", "b"),
            subject("a", "b", kind="Y"),
            subject("a", "c"),
            id="strict before entity-only",
        ),
        pytest.param(
            # strict 1/2 and 1/2; entity-only 1/2 against 1
            Subject.of([("n", "PER"), ("a", "ORG")]),
            Subject.of([("n", "PER"), ("b", "ORG")]),
            Subject.of([("n", "PER"), ("a", "LOC")]),
            id="entity-only breaks a strict tie",
        ),
        pytest.param(
            # strict 0; entity-only 0 against 1/2, although fuzzy is positive against 0
            subject("a b", "d"),
            subject("a b c", "d e"),
            subject("a b", "f", kind="Y"),
            id="entity-only before fuzzy",
        ),
        pytest.param(
            # strict 0, entity-only 0; fuzzy 0 against 1/2
            subject("Ann Lee"),
            subject("Bob Ray"),
            subject("Ann Ray"),
            id="fuzzy breaks what is left",
        ),
        pytest.param(
            # fuzzy is typed: 0 against 1/2
            subject("Ann Lee"),
            subject("Ann Ray", kind="Y"),
            subject("Zoe Lee"),
            id="fuzzy knows types",
        ),
    ],
)
def test_ties(predicted: Subject, worse: Subject, better: Subject) -> None:
    assert match([predicted], [worse, better]) == ((0, 1),)
    assert match([predicted], [better, worse]) == ((0, 0),)
    assert match([worse, better], [predicted]) == ((1, 0),)


def test_a_tie_may_lie_in_a_larger_assignment() -> None:
    # Strictly {0: 0, 1: 1} and {0: 1, 1: 0} both sum to 1; entity-only gives 1 and 2.
    predicted = [
        Subject.of([("a", "X"), ("b", "X")]),
        Subject.of([("a", "X"), ("c", "X")]),
    ]
    gold = [
        Subject.of([("a", "X"), ("c", "Y")]),
        Subject.of([("a", "X"), ("b", "Y")]),
    ]

    assert match(predicted, gold) == ((0, 1), (1, 0))


def test_a_tie_on_one_level_never_costs_the_level_before() -> None:
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


def test_a_tie_never_passes_over_a_subject_that_every_optimum_needs() -> None:
    # Strictly, only the middle gold is worth something: 1/2 with either prediction.
    # Entity-only, the outer ones are worth 2/3 and 1, yet both at once lose the 1/2.
    predicted = [subject("a"), subject("b")]
    gold = [
        subject("a", "z", kind="Y"),
        subject("a", "b", "c"),
        subject("b", kind="Y"),
    ]

    assert match(predicted, gold) == ((0, 1), (1, 2))


ANN, BOB = subject("Ann Lee", "32"), subject("Bob Ray", "41")


# Gold is Ann and Bob; what all of the many predicted subjects are, and the matched one(s).
@pytest.mark.parametrize(
    ("many", "pairs"),
    [
        pytest.param(lambda i: subject(f"x{i}"), [(0, 0), (1, 1)], id="nothing in common"),
        pytest.param(lambda i: subject(f"Ann {i}"), [(0, 0), (1, 1)], id="a token in common"),
        pytest.param(lambda i: subject("32", f"x{i}"), [(0, 0), (1, 1)], id="an entity in common"),
        pytest.param(lambda _: subject("32", "41"), [(0, 0), (1, 1)], id="all equal"),
    ],
)
def test_thousands_of_subjects(
    many: Callable[[int], Subject], pairs: Sequence[tuple[int, int]]
) -> None:
    predicted = [ANN, BOB, *map(many, range(2300))]

    assert match(predicted, [ANN, BOB]) == tuple(pairs)
    assert match([ANN, BOB], predicted) == tuple(pairs)


def test_thousands_on_both_sides_match_where_they_tie() -> None:
    predicted = [subject(f"a{i}") for i in range(300)]
    gold = [subject(f"b{i}") for i in range(400)]

    assert len(match(predicted, gold)) == 300


def test_denominators_beyond_float64_do_not_overflow() -> None:
    # The least common multiple of the 400 sums of two sizes has 344 digits.
    gold = [subject(*(f"{j}-{k}" for k in range(150 + 61 * j))) for j in range(20)]
    predicted = [subject(*(f"{i}-{k}" for k in range(40 + 11 * i))) for i in range(20)]

    assert match(predicted, gold) == tuple((i, i) for i in range(20))
