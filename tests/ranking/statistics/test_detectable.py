from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from pii_bench.ranking.statistics.detectable import smallest_detectable
from tests.ranking.statistics.of_values import parted, scores

STEPS = [0.0, 0.0, 0.0, 0.3, 0.3, 0.3]
NOTHING = scores([0.0] * 6)


def test_by_hand() -> None:
    # Mean 0.15, each 0.15 off: the standard error is 0.15 * sqrt(6 / 5) / sqrt(6) = 0.0671.
    # Student's t with 5 degrees of freedom: 2.571 at 0.975, 0.920 at 0.8.
    detectable = smallest_detectable(scores(STEPS), NOTHING)

    assert detectable == pytest.approx((2.571 + 0.920) * 0.0671, abs=1e-3)
    assert detectable == smallest_detectable(NOTHING, scores(STEPS))


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
    assert smallest_detectable(scores(STEPS), NOTHING) is not None


def test_more_than_a_whole_is_no_difference() -> None:
    apart = smallest_detectable(scores([0.0, 1.0] * 3), scores([1.0, 0.0] * 3))

    # Standard error 1 * sqrt(6 / 5) / sqrt(6) = 0.447, times 3.49.
    assert apart is None
