from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pii_bench.statistics.permutation import EXACT_UP_TO, FLIPS, holm, p_values
from tests.statistics.of_values import scores


def p_of(differences: list[float], clusters: list[int] | None = None) -> float:
    """p of two systems with these differences."""
    nothing = scores([0.0] * len(differences), clusters)
    return p_values([scores(differences, clusters), nothing])[0, 1]


def p_of_scipy(differences: list[float], flips: int) -> float:
    result = stats.permutation_test(
        (differences,),
        np.mean,
        permutation_type="samples",
        n_resamples=flips,
        rng=np.random.default_rng(3),
        batch=1_000,
    )
    return float(result.pvalue)


@pytest.mark.parametrize(
    ("differences", "expected"),
    [
        ([0.5], 1.0),
        ([0.5, 0.5, 0.5], 2 / 8),  # all up or all down
        ([0.5, 0.5, -0.5], 1.0),  # every flip has at least a half left
        ([0.5, 0.25, 0.25, -0.25], 8 / 16),  # 0.75 or more: 2 of 1.25 and 6 of 0.75
        ([0.0, 0.5, 0.0, 0.5], 2 / 4),  # only what differs is flipped
        ([0.0, 0.0], 1.0),
        ([0.1] * 13, 2 / 2**13),
    ],
)
def test_a_few_clusters_have_an_exact_p(differences: list[float], expected: float) -> None:
    assert p_of(differences) == expected


@given(st.lists(st.integers(-4, 4), min_size=1, max_size=8).filter(any))
def test_the_exact_p_is_that_of_scipy(quarters: list[int]) -> None:
    differences = [quarter / 4 for quarter in quarters]

    # scipy takes no single observation; of 2^9 flips, a million are all.
    expected = p_of_scipy([*differences, 0.0], 1_000_000)
    assert p_of(differences) == pytest.approx(expected)


@pytest.mark.parametrize("shift", [0.0, 0.1, 0.2])
def test_many_clusters_have_the_p_of_scipy_but_for_chance(shift: float) -> None:
    random = np.random.default_rng(11)
    differences = random.normal(shift, 0.5, size=EXACT_UP_TO + 47).tolist()

    # Each has a standard deviation of at most 0.005.
    expected = p_of_scipy(differences, 10_000)
    assert p_of(differences) == pytest.approx(expected, abs=0.02)


def test_one_more_cluster_than_exact_has_nearly_the_exact_p() -> None:
    # With 14 equal steps and four against them, 10 to 4: P(at least 10 heads of 14), twice.
    differences = [0.25] * 10 + [-0.25] * 4
    assert len(differences) == EXACT_UP_TO + 1

    exact = 2 * sum(math.comb(14, heads) for heads in range(10, 15)) / 2**14
    assert p_of(differences) == pytest.approx(exact, abs=0.015)


def test_samples_of_one_cluster_are_flipped_together() -> None:
    # 0.5 and -0.5 in each cluster cancel; six samples apart would differ in either way.
    assert p_of([0.5, -0.5] * 3, [0, 0, 1, 1, 2, 2]) == 1.0
    assert p_of([0.5] * 6, [0, 0, 1, 1, 2, 2]) == 2 / 8
    assert p_of([0.5] * 6) == 2 / 64


def test_where_no_random_flip_reaches_the_difference_p_is_above_0_and_bounded() -> None:
    # Sum 5 and sum of squares 1.25: 5^2 / (2 * 1.25) = 10, and 2 e^-10 is below 1 / 10,001.
    assert p_of([0.25] * 20) == pytest.approx(2 * math.exp(-10))
    # Sum 4 and sum of squares 1: 8, and 2 e^-8 is above.
    assert p_of([0.25] * 16) == 1 / (FLIPS + 1)


def test_the_order_of_two_systems_does_not_matter() -> None:
    random = np.random.default_rng(5)
    first, second = (scores(random.random(30).tolist()) for _ in range(2))

    assert p_values([first, second]) == p_values([second, first])


def test_a_pair_has_the_same_p_among_others() -> None:
    random = np.random.default_rng(6)
    systems = [scores(random.random(30).tolist()) for _ in range(3)]

    pairs = p_values(systems)

    assert list(pairs) == [(0, 1), (0, 2), (1, 2)]
    for (i, j), p in pairs.items():
        assert p_values([systems[i], systems[j]]) == {(0, 1): p}


def test_fewer_than_two_systems_are_no_pair() -> None:
    assert p_values([]) == p_values([scores([0.5])]) == {}


def test_systems_on_other_samples_are_not_compared() -> None:
    with pytest.raises(ValueError, match="same samples"):
        p_values([scores([0.5, 0.5]), scores([0.5, 0.5, 0.5])])


@pytest.mark.parametrize(
    ("p", "expected"),
    [
        ([], []),
        ([0.03], [0.03]),
        # By rank: 4 * 0.01, 3 * 0.02, 2 * 0.03, 1 * 0.04, and none below one before it.
        ([0.04, 0.01, 0.03, 0.02], [0.06, 0.04, 0.06, 0.06]),
        ([0.5, 0.001, 0.6], [1.0, 0.003, 1.0]),
        ([0.02, 0.02], [0.04, 0.04]),
    ],
)
def test_holm_by_hand(p: list[float], expected: list[float]) -> None:
    assert holm(p) == pytest.approx(expected)


@given(st.lists(st.floats(0, 1), max_size=8))
def test_holm_lies_between_p_and_bonferroni(p: list[float]) -> None:
    for raw, corrected in zip(p, holm(p), strict=True):
        assert raw <= corrected <= min(1, len(p) * raw)
