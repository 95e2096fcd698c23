from __future__ import annotations

import pytest

from pii_bench.scorer.counts import PRF, Counts


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
