from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_bench.prompting.outcome import Status
from pii_bench.ranking.statistics.scores import (
    MASKED_TEXT,
    Scores,
    cluster_sums,
    clusters_of,
    figures_of,
    scores_of,
)
from pii_bench.runs.evaluation import evaluate
from pii_bench.runs.predictions.prediction import Prediction
from pii_bench.tasks import Task
from tests.builders import make_sample
from tests.ranking.statistics.of_values import parted, scores

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


class TestContributions:
    """Figures by sample whose mean is the figure of all."""

    def test_of_a_mean_they_are_the_values(self) -> None:
        assert scores([0.25, 0.5]).contributions == (0.25, 0.5)

    def test_of_h_they_are_weighed_by_its_slopes(self) -> None:
        # P = 3/4 and R = 1/4: slopes 2 / 16 and 2 * 9 / 16.
        both = parted([1, 0.5], [0, 0.5])

        assert both.contributions == (1 / 8, 0.5 / 8 + 0.5 * 9 / 8)
        assert sum(both.contributions) / 2 == both.figure == 2 * (3 / 16) / 1

    def test_of_nothing_they_are_nothing(self) -> None:
        assert parted([0, 0], [0, 0]).contributions == (0, 0)

    @given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=6))
    def test_their_mean_is_the_figure(self, drawn: list[tuple[float, float]]) -> None:
        both = parted([p for p, _ in drawn], [r for _, r in drawn])

        assert sum(both.contributions) / len(drawn) == pytest.approx(both.figure)
        assert both.minus(both) == scores([0.0] * len(drawn))


def test_a_part_of_h_has_both_of_its_parts() -> None:
    both = parted([1, 0.5, 0], [0, 0.5, 1], clusters="aab")

    assert both.on({"s1", "s2"}) == Scores(("s1", "s2"), ("a", "b"), (0.5, 0), ((0.5, 0), (0.5, 1)))


def test_figures_are_made_of_columns() -> None:
    assert figures_of(np.array([[0.5], [0.25]])).tolist() == [0.5, 0.25]
    assert figures_of(np.array([[0.5, 0.5], [0.0, 1.0], [0.0, 0.0]])).tolist() == [0.5, 0.0, 0.0]


def test_an_evaluation_of_no_scored_sample_has_no_figures() -> None:
    assert scores_of(evaluate(Task.DETECTION, SAMPLES, {}), "strict", CLUSTERS) is None


@pytest.mark.parametrize(
    ("ids", "clusters", "values"),
    [((), (), ()), (("a",), ("a", "b"), (0.5,)), (("a",), ("a",), (0.5, 0.5))],
)
def test_scores_are_some_and_each_has_a_cluster_and_a_value(
    ids: tuple[str, ...], clusters: tuple[str, ...], values: tuple[float, ...]
) -> None:
    with pytest.raises(ValueError, match="must be as many and some"):
        Scores(ids, clusters, values)


def test_scores_on_some_of_their_samples() -> None:
    whole = scores([0.25, 0.5, 1.0], clusters="aba")

    assert whole.on({"s2", "s0", "another"}) == Scores(("s0", "s2"), ("a", "a"), (0.25, 1.0))
    assert whole.on({"another"}) is None


def test_a_difference_is_taken_sample_by_sample() -> None:
    difference = scores([0.5, 0.25], clusters="aa").minus(scores([0.25, 0.5], clusters="aa"))

    assert difference == scores([0.25, -0.25], clusters="aa")


@pytest.mark.parametrize("other", [scores([0.5]), scores([0.5, 0.5], clusters="aa")])
def test_there_is_no_difference_on_other_samples_or_clusters(other: Scores) -> None:
    with pytest.raises(ValueError, match="same samples"):
        scores([0.5, 0.5]).minus(other)


def test_h_has_two_columns_of_sums() -> None:
    sums, sizes = cluster_sums([parted([1, 0], [0, 0.5]), scores([0.25, 0.75])])

    assert sums.tolist() == [[1.0, 0.0, 0.25], [0.0, 0.5, 0.75]]
    assert sizes.tolist() == [1.0, 1.0]


def test_sums_and_sizes_of_clusters_are_in_the_order_of_their_first_samples() -> None:
    first = scores([0.25, 0.5, 0.75], clusters="bab")
    second = scores([1.0, 0.0, 1.0], clusters="bab")

    sums, sizes = cluster_sums([first, second])

    assert sums.tolist() == [[1.0, 2.0], [0.5, 0.0]]
    assert sizes.tolist() == [2.0, 1.0]
