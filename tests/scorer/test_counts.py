from __future__ import annotations

import pytest

from pii_bench.scorer import score_query_related
from pii_bench.scorer.counts import PRF, Counts, macro, micro


@pytest.mark.parametrize(
    ("predicted", "gold", "expected"),
    [
        ("abc", "abcd", PRF(1.0, 3 / 4, 6 / 7)),
        ("abcd", "abc", PRF(3 / 4, 1.0, 6 / 7)),
        ("ab", "bc", PRF(1 / 2, 1 / 2, 1 / 2)),
        ("ab", "cd", PRF(0.0, 0.0, 0.0)),
        ("", "", PRF(1.0, 1.0, 1.0)),
        ("a", "", PRF(0.0, 0.0, 0.0)),
        ("", "a", PRF(0.0, 0.0, 0.0)),
    ],
)
def test_precision_recall_and_f1_of_two_sets(predicted: str, gold: str, expected: PRF) -> None:
    assert Counts.of(set(predicted), set(gold)).prf == expected


def test_counts_add_up() -> None:
    assert Counts(1, 2, 3) + Counts(0, 1, 0) == Counts(1, 3, 3)


def test_harmonic_mean() -> None:
    assert PRF.harmonic(1.0, 0.5) == PRF(1.0, 0.5, 2 / 3)
    assert PRF.harmonic(0.0, 0.0) == PRF(0.0, 0.0, 0.0)


def test_the_mean_is_over_samples() -> None:
    assert macro([PRF(1.0, 0.5, 0.6), PRF(0.0, 0.5, 0.0)]) == PRF(0.5, 0.5, 0.3)


def test_a_mean_of_nothing_is_undefined() -> None:
    assert macro([]) is None


def test_counts_are_summed_and_divided_once() -> None:
    assert micro([Counts(1, 1, 1), Counts(1, 3, 1)]) == PRF(2 / 4, 2 / 2, 2 / 3)


def test_micro_with_an_empty_side() -> None:
    assert micro([Counts(0, 0, 3)]) == PRF(0.0, 0.0, 0.0)
    assert micro([Counts(0, 0, 0)]) is None
    assert micro([]) is None


def test_a_failure_on_an_empty_gold_set_is_never_perfect() -> None:
    failure = score_query_related(None, [])

    assert macro([failure.exact]) == PRF(0.0, 0.0, 0.0)
    assert micro([failure.counts]) is None
