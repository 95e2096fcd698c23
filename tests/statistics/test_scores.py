from __future__ import annotations

import pytest

from pii_bench.evaluation import evaluate
from pii_bench.outcome import Status
from pii_bench.predictions.prediction import Prediction
from pii_bench.statistics.scores import Scores, cluster_sums, clusters_of, scores_of
from pii_bench.tasks import Task
from tests.builders import make_sample
from tests.statistics.of_values import scores

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
    assert found.mean == 1 / 3


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


def test_sums_and_sizes_of_clusters_are_in_the_order_of_their_first_samples() -> None:
    first = scores([0.25, 0.5, 0.75], clusters="bab")
    second = scores([1.0, 0.0, 1.0], clusters="bab")

    sums, sizes = cluster_sums([first, second])

    assert sums.tolist() == [[1.0, 2.0], [0.5, 0.0]]
    assert sizes.tolist() == [2.0, 1.0]
