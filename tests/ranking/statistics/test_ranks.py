from __future__ import annotations

import pytest

from pii_bench.ranking.statistics.ranks import Standing, ranked
from tests.ranking.statistics.of_values import parted, scores

UNEVEN = scores([0.0, 1.0] * 20)  # mean 0.5


def ranks(*systems: float | list[float]) -> list[int]:
    """Ranks of systems by their figures on 40 samples; one figure is the same on each."""
    whole = [each if isinstance(each, list) else [each] * 40 for each in systems]
    return [standing.rank for standing in ranked([scores(values) for values in whole])]


def test_systems_that_differ_have_ranks_by_their_means_in_the_order_given() -> None:
    assert ranks(0.5, 0.9, 0.1) == [2, 1, 3]


def test_systems_that_are_equal_share_a_rank_and_the_next_one_is_free() -> None:
    assert ranks(0.9, 0.5, 0.5, 0.1) == [1, 2, 2, 4]


def test_a_difference_on_few_samples_is_none() -> None:
    # One pair on which 5 or 6 of 40 samples differ, all the same way: p is 2 / 2^5 or 2 / 2^6.
    assert ranks([0.6] * 5 + [0.5] * 35, 0.5) == [1, 1]
    assert ranks([0.6] * 6 + [0.5] * 34, 0.5) == [1, 2]


def test_pairs_are_corrected_for_their_number() -> None:
    # p = 2 / 2^6 = 0.031 counts alone; with two pairs of p = 1 beside it, it is 0.094.
    better = [0.6] * 6 + [0.5] * 34
    assert ranks(better, 0.5) == [1, 2]
    assert ranks(better, 0.5, better) == [1, 1, 1]


def test_what_differs_from_neither_of_two_that_differ_has_the_rank_of_the_better() -> None:
    middle = [0.0, 1.0] * 19 + [1.0, 1.0]  # mean 0.525

    assert ranks(0.55, middle, 0.5) == [1, 1, 2]


def test_an_uneven_system_may_have_a_smaller_rank_than_a_higher_mean() -> None:
    # 0.6 is better than 0.55 on every sample; that it is better than the uneven one is not shown.
    assert ranks(0.6, 0.55, list(UNEVEN.values)) == [1, 2, 1]


def test_the_detectable_difference_is_that_to_the_best_of_the_others() -> None:
    best, second = scores([0.9] * 40), scores([0.8] * 40)

    found = ranked([second, UNEVEN, best])

    # Between the even ones it is always the same.
    assert [found[0], found[2]] == [Standing(2, 0.0), Standing(1, 0.0)]
    # Each is 0.5 off the mean: 0.5 * sqrt(40 / 39) / sqrt(40) * (2.0227 + 0.8512).
    assert found[1].detectable == pytest.approx(0.2301, abs=1e-4)


def test_by_h_neither_masking_nothing_nor_masking_everything_is_first() -> None:
    nothing, everything = parted([0] * 40, [1] * 40), parted([1] * 40, [0] * 40)
    between = parted([0.75] * 40, [0.75] * 40)

    assert [each.rank for each in ranked([nothing, between, everything])] == [2, 1, 2]


def test_one_system_is_first_and_none_is_no_standing() -> None:
    assert ranked([UNEVEN]) == [Standing(1, None)]
    assert ranked([]) == []


def test_ranks_on_other_samples_are_refused() -> None:
    with pytest.raises(ValueError, match="same samples"):
        ranked([UNEVEN, scores([0.5] * 39)])
