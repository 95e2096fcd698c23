from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pii_bench.ranking.scores import (
    LEVEL,
    MASKED_TEXT,
    RESAMPLES,
    SEED,
    Interval,
    Scores,
    cluster_sums,
    clusters_of,
    difference_interval,
    intervals,
    scores_of,
)
from pii_bench.runs.evaluation import evaluate
from pii_bench.systems.predictions import Prediction
from pii_bench.tasks import Status, Task
from tests.builders import make_sample
from tests.ranking.of_values import parted, scores

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SAMPLES = [
    make_sample("s1"),
    make_sample("s2", description="Bo Ray is 32.", subjects=[], related=[]),
    make_sample("s3", query="May I vote?"),
]
CLUSTERS = {"s1": "s1", "s2": "s2", "s3": "s1"}


def test_samples_with_one_description_are_of_one_cluster() -> None:
    assert clusters_of(SAMPLES) == CLUSTERS


def test_the_figures_of_an_evaluation_are_of_its_scored_samples() -> None:
    predictions = {
        "s1": Prediction(Status.OK, related=("32", "Bo")),  # P = 1/2, R = 1
        "s2": Prediction(Status.INFRA_ERROR),
        "s3": Prediction(Status.REFUSED),
    }
    evaluation = evaluate(Task.QUERY_RELATED, SAMPLES, predictions)

    found = scores_of(evaluation, "exact", CLUSTERS)

    assert found == Scores(("s1", "s3"), ("s1", "s1"), (2 / 3, 0.0))
    assert found.figure == 1 / 3


def test_h_of_masking_is_made_of_protection_and_retention() -> None:
    predictions = {
        # Ann Lee is masked and 32 is kept, as it should be.
        "s1": Prediction(
            Status.OK, subjects=((("Ann Lee", "PER"), ("32", "DEM")),), related=("32",)
        ),
        "s2": Prediction(Status.MALFORMED),
        "s3": Prediction(Status.OK, subjects=((("32", "DEM"),),), related=("32",)),
    }
    evaluation = evaluate(Task.MASKING, SAMPLES, predictions)

    found = scores_of(evaluation, MASKED_TEXT, CLUSTERS)

    ids = ("s1", "s2", "s3")
    assert found == Scores(ids, ("s1", "s2", "s1"), (1, 0, 0), ((1, 0, 0), (1, 0, 1)))
    # P = 1/3, R = 2/3.
    assert found.figure == pytest.approx(2 * (1 / 3) * (2 / 3))


@pytest.mark.parametrize(
    ("whole", "expected"),
    [
        (scores([0.25, 0.5]), (0.25, 0.5)),
        # P = 3/4 and R = 1/4: slopes 2 / 16 and 2 * 9 / 16.
        (parted([1, 0.5], [0, 0.5]), (1 / 8, 0.5 / 8 + 0.5 * 9 / 8)),
        (parted([0, 0], [0, 0]), (0, 0)),
    ],
)
def test_contributions_are_the_values_or_weighed_by_the_slopes_of_h(
    whole: Scores, expected: tuple[float, ...]
) -> None:
    assert whole.contributions == expected


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=6))
def test_the_mean_of_contributions_is_the_figure(drawn: list[tuple[float, float]]) -> None:
    both = parted([p for p, _ in drawn], [r for _, r in drawn])

    assert sum(both.contributions) / len(drawn) == pytest.approx(both.figure)
    assert both.minus(both) == scores([0.0] * len(drawn))


def test_an_evaluation_of_no_scored_sample_has_no_figures() -> None:
    assert scores_of(evaluate(Task.DETECTION, SAMPLES, {}), "strict", CLUSTERS) is None


@pytest.mark.parametrize(
    ("ids", "clusters", "values"),
    [((), (), ()), (("a",), ("a", "b"), (0.5,)), (("a",), ("a",), (0.5, 0.5))],
)
def test_scores_of_no_samples_or_unequal_lengths_are_refused(
    ids: tuple[str, ...], clusters: tuple[str, ...], values: tuple[float, ...]
) -> None:
    with pytest.raises(ValueError, match="must have one length above 0"):
        Scores(ids, clusters, values)


def test_scores_on_some_of_their_samples() -> None:
    whole = scores([0.25, 0.5, 1.0], clusters="aba")
    both = parted([1, 0.5, 0], [0, 0.5, 1], clusters="aab")

    assert whole.on({"s2", "s0", "another"}) == Scores(("s0", "s2"), ("a", "a"), (0.25, 1.0))
    assert whole.on({"another"}) is None
    assert both.on({"s1", "s2"}) == Scores(("s1", "s2"), ("a", "b"), (0.5, 0), ((0.5, 0), (0.5, 1)))


@pytest.mark.parametrize("other", [scores([0.5]), scores([0.5, 0.5], clusters="aa")])
def test_there_is_no_difference_on_other_samples_or_clusters(other: Scores) -> None:
    with pytest.raises(ValueError, match="same samples"):
        scores([0.5, 0.5]).minus(other)


def test_sums_and_sizes_of_clusters_are_in_the_order_of_their_first_samples() -> None:
    first = scores([0.25, 0.5, 0.75], clusters="bab")
    # H has two columns.
    second = parted([1.0, 0.0, 1.0], [0.0, 0.25, 0.5], clusters="bab")

    sums, sizes = cluster_sums([first, second])

    assert sums.tolist() == [[1.0, 2.0, 0.5], [0.5, 0.0, 0.25]]
    assert sizes.tolist() == [2.0, 1.0]


def drawn(count: int, clusters: int | None = None) -> Scores:
    """Figures from 0 to 1, each cluster about another mean."""
    random = np.random.default_rng(7)
    of = np.arange(count) if clusters is None else random.integers(clusters, size=count)
    values = np.clip(random.random(count) / 2 + (of % 3) / 4, 0, 1)
    return scores(values.tolist(), of.tolist())


def assert_as_by_scipy(
    found: Interval | None, data: Sequence[np.ndarray], statistic: Callable[..., np.ndarray]
) -> None:
    """Compare with the interval that scipy computes from the same draws."""
    expected = stats.bootstrap(
        data,
        statistic,
        n_resamples=RESAMPLES,
        batch=1_000,
        paired=True,
        confidence_level=LEVEL,
        method="percentile",
        random_state=np.random.RandomState(SEED),
    ).confidence_interval
    assert found is not None
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-9)


@pytest.mark.parametrize("clusters", [None, 40])
def test_clusters_are_drawn_whole_as_scipy_draws_pairs_of_sum_and_size(
    clusters: int | None,
) -> None:
    sample = drawn(150, clusters)
    sums, sizes = cluster_sums([sample])

    (found,) = intervals([sample])

    assert_as_by_scipy(
        found,
        (sums[:, 0], sizes),
        lambda total, size, axis: total.sum(axis=axis) / size.sum(axis=axis),
    )


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

    assert_as_by_scipy(found, (protection, retention), h)


def test_the_interval_of_a_difference_of_two_h_is_of_the_same_draws() -> None:
    random = np.random.default_rng(9)
    a, b, c, d = (random.random(60) for _ in range(4))

    found = difference_interval(parted(a.tolist(), b.tolist()), parted(c.tolist(), d.tolist()))

    assert_as_by_scipy(found, (a, b, c, d), lambda a, b, c, d, axis: h(a, b, axis) - h(c, d, axis))


def test_one_description_tells_nothing_of_others() -> None:
    one = scores([0.5, 1.0], clusters="aa")

    assert intervals([one]) == [None]
    assert difference_interval(one, one) is None
    assert intervals([]) == []
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


@given(st.lists(st.floats(0, 1), min_size=2, max_size=12))
def test_an_interval_lies_between_the_extremes(values: list[float]) -> None:
    (found,) = intervals([scores(values)])

    assert found is not None
    assert min(values) - 1e-9 <= found.low <= found.high <= max(values) + 1e-9
