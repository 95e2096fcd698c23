from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pii_bench.ranking.scores import Scores, difference_interval, intervals
from pii_bench.ranking.significance import (
    EXACT_UP_TO,
    FLIPS,
    Standing,
    _bound,
    _Pair,
    compare,
    holm,
    p_values,
    ranked,
    smallest_detectable,
)
from tests.ranking.of_values import parted, scores

STEPS = [0.0, 0.0, 0.0, 0.3, 0.3, 0.3]
NOTHING = scores([0.0] * 6)

FIRST = scores([1.0, 0.5, 0.25, 1.0, 1.0, 0.75])
SECOND = scores([0.5, 0.5, 0.5, 0.0, 0.0, 0.5])

UNEVEN = scores([0.0, 1.0] * 20)  # mean 0.5


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


@pytest.mark.parametrize("parts", [1, 2])
def test_a_pair_has_the_same_p_among_others_and_in_the_other_order(parts: int) -> None:
    random = np.random.default_rng(6)
    drawn = [random.random((parts, 30)).tolist() for _ in range(3)]
    systems = [scores(*each) if parts == 1 else parted(*each) for each in drawn]

    pairs = p_values(systems)

    assert list(pairs) == [(0, 1), (0, 2), (1, 2)]
    for (i, j), p in pairs.items():
        assert p_values([systems[i], systems[j]]) == {(0, 1): p}
        assert p_values([systems[j], systems[i]]) == {(0, 1): p}


class TestH:
    """Answers are exchanged by description, and H of both systems is computed anew."""

    EIGHTHS = st.integers(0, 8).map(lambda n: n / 8)
    FOUR = st.tuples(EIGHTHS, EIGHTHS, EIGHTHS, EIGHTHS)

    @staticmethod
    def exact(rows: list[tuple[float, ...]]) -> float:
        """The share of all exchanges that reach the difference of none."""
        differences = []
        for exchanged in product([False, True], repeat=len(rows)):
            changed = [
                (q, s, p, r) if change else (p, r, q, s)
                for (p, r, q, s), change in zip(rows, exchanged, strict=True)
            ]
            p, r, q, s = zip(*changed, strict=True)
            differences.append(abs(parted(p, r).figure - parted(q, s).figure))
        return float(np.mean([each >= differences[0] - 1e-9 for each in differences]))

    @staticmethod
    def p_of(rows: list[tuple[float, ...]]) -> float:
        p, r, q, s = zip(*rows, strict=True)
        return p_values([parted(p, r), parted(q, s)])[0, 1]

    @given(st.lists(FOUR, min_size=1, max_size=8))
    def test_the_exact_p_is_that_of_all_exchanges(self, rows: list[tuple[float, ...]]) -> None:
        assert self.p_of(rows) == pytest.approx(self.exact(rows))

    def test_many_clusters_have_the_p_of_scipy_but_for_chance(self) -> None:
        random = np.random.default_rng(13)
        count = EXACT_UP_TO + 37
        rows = random.random((count, 4))
        rows[:, :2] = np.clip(rows[:, :2] + 0.07, 0, 1)
        first, second = rows[:, :2], rows[:, 2:]

        def h(places: np.ndarray, axis: int) -> np.ndarray:
            # Places of the second system follow those of the first.
            means = np.vstack([first, second])[places].mean(axis=axis % places.ndim)
            return np.asarray(2 * means[..., 0] * means[..., 1] / means.sum(axis=-1))

        expected = stats.permutation_test(
            (np.arange(count), count + np.arange(count)),
            lambda a, b, axis: h(a, axis) - h(b, axis),
            permutation_type="samples",
            n_resamples=10_000,
            rng=np.random.default_rng(3),
            batch=1_000,
        )

        assert 0.02 < expected.pvalue < 0.9
        assert self.p_of([*map(tuple, rows.tolist())]) == pytest.approx(expected.pvalue, abs=0.02)

    @given(st.lists(FOUR, min_size=1, max_size=9))
    def test_the_bound_is_never_below_the_exact_p(self, rows: list[tuple[float, ...]]) -> None:
        whole = np.array(rows)
        pair = _Pair.of(whole[:, :2], whole[:, 2:])

        if pair.observed > 1e-6:
            assert _bound(pair) >= self.exact(rows) - 1e-12

    def test_where_no_random_flip_reaches_it_p_is_bounded(self) -> None:
        # Means 1 and 1/2 throughout, so t is 1/3 to 2/3 and its slopes at most 4 * 4/9.
        clear = self.p_of([(1, 1, 0.5, 0.5)] * 400)

        assert 0 < clear < 1e-9
        assert self.p_of([(1, 1, 0.5, 0.5)] * 20) == pytest.approx(1 / (FLIPS + 1))


def test_fewer_than_two_systems_are_no_pair() -> None:
    assert p_values([]) == p_values([scores([0.5])]) == {}


def test_systems_on_other_samples_or_with_other_figures_are_not_compared() -> None:
    with pytest.raises(ValueError, match="same samples"):
        p_values([scores([0.5, 0.5]), scores([0.5, 0.5, 0.5])])
    with pytest.raises(ValueError, match="same samples"):
        ranked([UNEVEN, scores([0.5] * 39)])
    with pytest.raises(ValueError, match="one kind of figure"):
        p_values([parted([1, 0], [1, 1]), scores([1, 0])])


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


def test_without_clusters_it_is_made_of_the_standard_error_of_a_mean() -> None:
    values = np.random.default_rng(2).random(50)

    detectable = smallest_detectable(scores(values.tolist()), scores([0.5] * 50))

    quantiles = np.sum(stats.t.ppf([0.975, 0.8], df=49))
    assert detectable == pytest.approx(quantiles * stats.sem(values - 0.5))


def test_samples_that_only_repeat_a_description_show_nothing_more() -> None:
    clusters = [number // 2 for number in range(12)]
    twice = scores([value for value in STEPS for _ in range(2)], clusters)

    detectable = smallest_detectable(twice, scores([0.0] * 12, clusters))

    assert detectable == smallest_detectable(scores(STEPS), NOTHING)


def test_what_differs_the_same_everywhere_has_no_spread() -> None:
    # Of descriptions with one and with three samples, too.
    clusters = [0, 1, 2, *[3] * 3, *[4] * 3, *[5] * 3]

    assert smallest_detectable(scores([0.75] * 8), scores([0.5] * 8)) == 0.0
    assert smallest_detectable(scores([0.75] * 12, clusters), scores([0.5] * 12, clusters)) == 0.0


def test_of_h_it_is_that_of_its_contributions() -> None:
    random = np.random.default_rng(5)
    first, second = (parted(*random.random((2, 40)).tolist()) for _ in range(2))

    expected = smallest_detectable(scores(first.contributions), scores(second.contributions))
    assert smallest_detectable(first, second) == expected


def test_five_descriptions_show_nothing() -> None:
    # All five flips alike: 2 / 2^5 is not below 0.05. Of six, 2 / 2^6 is.
    assert smallest_detectable(scores(STEPS[1:]), scores([0.0] * 5)) is None
    # Mean 0.15, each 0.15 off: the standard error is 0.15 * sqrt(6 / 5) / sqrt(6) = 0.0671.
    # Student's t with 5 degrees of freedom: 2.571 at 0.975, 0.920 at 0.8.
    detectable = smallest_detectable(scores(STEPS), NOTHING)
    assert detectable == pytest.approx((2.571 + 0.920) * 0.0671, abs=1e-3)


def test_more_than_a_whole_is_no_difference() -> None:
    # Standard error 1 * sqrt(6 / 5) / sqrt(6) = 0.447, times 3.49.
    assert smallest_detectable(scores([0.0, 1.0] * 3), scores([1.0, 0.0] * 3)) is None


def test_both_means_their_difference_and_what_can_be_said_of_it() -> None:
    found = compare(FIRST, SECOND)

    assert found is not None
    assert (found.first.figure, found.second.figure) == (0.75, 2 / 6)
    assert found.difference == pytest.approx(2.5 / 6)
    assert [
        found.first_interval,
        found.second_interval,
        found.difference_interval,
    ] == intervals([FIRST, SECOND, FIRST.minus(SECOND)])
    assert found.detectable == smallest_detectable(FIRST, SECOND)
    # In quarters 2, 1, 4, 4, 1, of sum 12 with 10 observed: the two ones may be turned singly.
    assert found.p == pytest.approx(2 * 3 / 2**5)


def test_samples_where_they_differ_most_come_first_and_equals_not_at_all() -> None:
    found = compare(FIRST, SECOND)

    assert found is not None
    assert found.most_different(3) == [("s3", 1.0, 0.0), ("s4", 1.0, 0.0), ("s0", 1.0, 0.5)]
    named = [sample_id for sample_id, _, _ in found.most_different(10)]
    assert named == ["s3", "s4", "s0", "s2", "s5"]
    assert found.tally() == (4, 1, 1)


def test_only_samples_that_both_have_are_compared() -> None:
    ids = ("s1", "s3", "s9")
    some = Scores(ids, ids, (0.5, 0.5, 1.0))

    found = compare(FIRST, some)

    assert found is not None
    assert found.first == Scores(("s1", "s3"), ("s1", "s3"), (0.5, 1.0))
    assert found.second == Scores(("s1", "s3"), ("s1", "s3"), (0.5, 0.5))
    assert compare(FIRST, Scores(("s9",), ("s9",), (1.0,))) is None


def test_two_h_differ_by_more_than_the_mean_of_their_samples() -> None:
    # Each protects where the other retains: of its samples, every H is 0.
    first, second = parted([1, 0] * 4, [0, 1] * 4), parted([0.5] * 8, [0.25] * 8)

    found = compare(first, second)

    assert found is not None
    assert found.first.figure == 0.5
    assert found.second.figure == pytest.approx(1 / 3)
    assert found.difference == pytest.approx(1 / 6)
    assert found.difference_interval == difference_interval(first, second)
    assert found.tally() == (0, 8, 0)


BETTER_ON_SIX = [0.6] * 6 + [0.5] * 34


@pytest.mark.parametrize(
    ("systems", "expected"),
    [
        # Ranks are in the order given; equal systems share one, and the next one is free.
        ([0.5, 0.9, 0.1], [2, 1, 3]),
        ([0.9, 0.5, 0.5, 0.1], [1, 2, 2, 4]),
        # 5 or 6 of 40 samples differ, all the same way: p is 2 / 2^5 or 2 / 2^6.
        ([[0.6] * 5 + [0.5] * 35, 0.5], [1, 1]),
        ([BETTER_ON_SIX, 0.5], [1, 2]),
        # Together with two pairs of p = 1, p = 2 / 2^6 = 0.031 is corrected to 0.094.
        ([BETTER_ON_SIX, 0.5, BETTER_ON_SIX], [1, 1, 1]),
        # A mean of 0.525 that differs from neither of the two that differ.
        ([0.55, [0.0, 1.0] * 19 + [1.0, 1.0], 0.5], [1, 1, 2]),
        # 0.6 is better than 0.55 on every sample; that it is better than an uneven system is not
        # shown, which so has a smaller rank than a higher mean.
        ([0.6, 0.55, [0.0, 1.0] * 20], [1, 2, 1]),
    ],
)
def test_ranks_count_the_systems_that_are_significantly_better(
    systems: list[float | list[float]], expected: list[int]
) -> None:
    whole = [each if isinstance(each, list) else [each] * 40 for each in systems]

    assert [each.rank for each in ranked([scores(values) for values in whole])] == expected


def test_the_detectable_difference_is_that_to_the_best_of_the_others() -> None:
    best, second = scores([0.9] * 40), scores([0.8] * 40)

    found = ranked([second, UNEVEN, best])

    # Between the even ones it is always the same.
    assert [found[0], found[2]] == [Standing(2, 0.0), Standing(1, 0.0)]
    # Each is 0.5 off the mean: 0.5 * sqrt(40 / 39) / sqrt(40) * (2.0227 + 0.8512).
    assert found[1].detectable == pytest.approx(0.2301, abs=1e-4)


def test_one_system_is_first_and_none_is_no_standing() -> None:
    assert ranked([UNEVEN]) == [Standing(1, None)]
    assert ranked([]) == []
