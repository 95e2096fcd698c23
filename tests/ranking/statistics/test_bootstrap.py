from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pii_bench.ranking.statistics.bootstrap import (
    LEVEL,
    RESAMPLES,
    SEED,
    Interval,
    difference_interval,
    intervals,
)
from pii_bench.ranking.statistics.scores import Scores, cluster_sums
from tests.ranking.statistics.of_values import parted, scores


def drawn(count: int, clusters: int | None = None) -> Scores:
    """Figures from 0 to 1, each cluster about another mean."""
    random = np.random.default_rng(7)
    of = np.arange(count) if clusters is None else random.integers(clusters, size=count)
    values = np.clip(random.random(count) / 2 + (of % 3) / 4, 0, 1)
    return scores(values.tolist(), of.tolist())


def test_there_are_as_many_resamples_as_the_issue_asks_for() -> None:
    assert RESAMPLES >= 2_000


def test_with_the_same_draws_scipy_has_the_same_interval() -> None:
    sample = drawn(150)

    (found,) = intervals([sample])

    expected = stats.bootstrap(
        (sample.values,),
        np.mean,
        n_resamples=RESAMPLES,
        batch=1_000,
        confidence_level=LEVEL,
        method="percentile",
        random_state=np.random.RandomState(SEED),
    ).confidence_interval
    assert found is not None
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_clusters_are_drawn_whole_as_scipy_draws_pairs_of_sum_and_size() -> None:
    sample = drawn(150, clusters=40)
    sums, sizes = cluster_sums([sample])

    (found,) = intervals([sample])

    expected = stats.bootstrap(
        (sums[:, 0], sizes),
        lambda total, size, axis: total.sum(axis=axis) / size.sum(axis=axis),
        n_resamples=RESAMPLES,
        batch=1_000,
        paired=True,
        confidence_level=LEVEL,
        method="percentile",
        random_state=np.random.RandomState(SEED),
    ).confidence_interval
    assert found is not None
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-9)


def h(protection: np.ndarray, retention: np.ndarray, axis: int) -> np.ndarray:
    """The harmonic mean of two means, as scipy wants a statistic."""
    p, r = protection.mean(axis=axis), retention.mean(axis=axis)
    return np.asarray(2 * p * r / (p + r))


def test_h_is_computed_anew_of_both_means_of_the_same_draws() -> None:
    random = np.random.default_rng(8)
    protection = random.random(80)
    # They are related, so that drawing them apart would give another interval.
    retention = np.clip(1 - protection + random.normal(0, 0.1, 80), 0, 1)

    (found,) = intervals([parted(protection.tolist(), retention.tolist())])

    expected = stats.bootstrap(
        (protection, retention),
        h,
        n_resamples=RESAMPLES,
        batch=1_000,
        paired=True,
        confidence_level=LEVEL,
        method="percentile",
        random_state=np.random.RandomState(SEED),
    ).confidence_interval
    assert found is not None
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_the_interval_of_a_difference_of_two_h_is_of_the_same_draws() -> None:
    random = np.random.default_rng(9)
    a, b, c, d = (random.random(60) for _ in range(4))

    found = difference_interval(parted(a.tolist(), b.tolist()), parted(c.tolist(), d.tolist()))

    expected = stats.bootstrap(
        (a, b, c, d),
        lambda a, b, c, d, axis: h(a, b, axis) - h(c, d, axis),
        n_resamples=RESAMPLES,
        batch=1_000,
        paired=True,
        confidence_level=LEVEL,
        method="percentile",
        random_state=np.random.RandomState(SEED),
    ).confidence_interval
    assert found is not None
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_one_description_tells_no_difference() -> None:
    one = scores([0.5, 1.0], clusters="aa")

    assert difference_interval(one, one) is None
    with pytest.raises(ValueError, match="same samples"):
        difference_interval(one, scores([0.5]))


def test_samples_that_only_repeat_a_description_do_not_narrow_the_interval() -> None:
    once = [0.0, 1.0, 0.5, 0.75, 0.25, 0.0, 1.0, 1.0]
    twice = [value for value in once for _ in range(2)]

    (single,) = intervals([scores(once)])
    (double,) = intervals([scores(twice, [number // 2 for number in range(16)])])
    (taken_apart,) = intervals([scores(twice)])

    assert single == double
    assert single is not None
    assert taken_apart is not None
    assert taken_apart.low > single.low


def test_an_interval_does_not_hang_on_the_other_scores() -> None:
    first, second, clustered = drawn(40), scores([0.5] * 40), drawn(60, clusters=20)
    both = parted(first.values, second.values)

    together = intervals([first, clustered, both, second])

    assert together == [
        *intervals([first]),
        *intervals([clustered]),
        *intervals([both]),
        Interval(0.5, 0.5),
    ]


def test_one_description_tells_nothing_of_others() -> None:
    assert intervals([scores([0.5, 1.0], clusters="aa")]) == [None]
    assert intervals([]) == []


@given(st.lists(st.floats(0, 1), min_size=2, max_size=12))
def test_an_interval_lies_between_the_extremes(values: list[float]) -> None:
    (found,) = intervals([scores(values)])

    assert found is not None
    assert min(values) - 1e-9 <= found.low <= found.high <= max(values) + 1e-9
