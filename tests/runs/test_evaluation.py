from __future__ import annotations

from collections import Counter

import pytest

from pii_bench.runs.evaluation import CompactScores, Tally, evaluate, score_sample
from pii_bench.scorer import PRF, Counts, MaskedTextScore
from pii_bench.systems.predictions import Prediction
from pii_bench.tasks import Status, Task
from tests.builders import make_sample

# Gold: Ann Lee (PER) and 32 (DEM); 32 is related to the query.
GOLD = make_sample()
RIGHT = Prediction(
    Status.OK,
    subjects=((("Ann Lee", "PER"), ("32", "DEM")),),
    related=("32",),
    rewritten="Somebody is 32.",
)
HALF = Prediction(Status.REPAIRED, subjects=((("Ann Lee", "PER"),),), related=("32", "Bo"))
NOTHING = Prediction(Status.OK, subjects=(), related=(), rewritten="Somebody.")
ONE = PRF(1.0, 1.0, 1.0)
ZERO = PRF(0.0, 0.0, 0.0)


@pytest.mark.parametrize("task", Task)
def test_a_prediction_equal_to_the_gold_is_perfect(task: Task) -> None:
    score = score_sample(task, GOLD, RIGHT)

    assert set(score.metrics.values()) == {ONE}
    assert score.hallucinated == 0


@pytest.mark.parametrize("task", Task)
@pytest.mark.parametrize("status", ["malformed", "truncated", "empty", "refused", "filtered"])
def test_a_failure_of_the_model_is_zero_even_if_the_gold_is_empty(task: Task, status: str) -> None:
    empty = make_sample(subjects=[], related=[])

    for sample in (GOLD, empty):
        evaluation = evaluate(task, [sample], {"s1": Prediction(Status(status))})
        assert evaluation.complete
        (score,) = evaluation.scores
        assert set(score.metrics.values()) == {ZERO}


@pytest.mark.parametrize("task", Task)
def test_an_empty_prediction_for_a_sample_without_gold_is_perfect(task: Task) -> None:
    score = score_sample(task, make_sample(subjects=[], related=[]), NOTHING)

    assert set(score.metrics.values()) == {ONE}


@pytest.mark.parametrize(
    ("task", "metrics"),
    [
        # One of two entities: P = 1, R = 1/2, F1 = 2/3.
        (
            Task.DETECTION,
            dict.fromkeys(("strict", "entity", "entity_matched"), PRF(1.0, 1 / 2, 2 / 3)),
        ),
        # 32 and Bo against 32: P = 1/2, R = 1.
        (Task.QUERY_RELATED, {"exact": PRF(1 / 2, 1.0, 2 / 3)}),
        # Gold masks Ann Lee; so does {Ann Lee} minus {32, Bo}.
        (Task.MASKING, {"exact": ONE}),
    ],
)
def test_metrics_by_hand(task: Task, metrics: dict[str, PRF]) -> None:
    assert metrics.items() <= score_sample(task, GOLD, HALF).metrics.items()


def test_texts_that_are_not_in_the_description_are_counted_as_hallucinated() -> None:
    invented = Prediction(
        Status.OK,
        subjects=((("Ann  Lee", "PER"), ("33", "DEM")), (("33", "DEM"), ("ann lee", "PER"))),
        related=("32", "33", "Ann Lee is"),
    )

    counts = {}
    for task in (Task.DETECTION, Task.QUERY_RELATED, Task.MASKING):
        score = score_sample(task, GOLD, invented)
        counts[task] = (score.predicted, score.hallucinated)

    # Spaces in "Ann  Lee" do not matter, 33 counts once, and "ann lee" differs by case.
    assert counts == {Task.DETECTION: (3, 2), Task.QUERY_RELATED: (3, 1), Task.MASKING: (2, 1)}


def test_macro_averages_samples_and_micro_sums_counts() -> None:
    samples = [make_sample("s1"), make_sample("s2"), make_sample("s3")]
    predictions = {"s1": RIGHT, "s2": HALF, "s3": Prediction(Status.MALFORMED)}

    evaluation = evaluate(Task.DETECTION, samples, predictions)
    mean, total = evaluation.macro("strict"), evaluation.micro("strict")

    assert mean is not None
    assert mean.precision == pytest.approx((1 + 1 + 0) / 3)
    assert mean.recall == pytest.approx((1 + 1 / 2 + 0) / 3)
    assert mean.f1 == pytest.approx((1 + 2 / 3 + 0) / 3)
    # 3 of 3 predicted entities are right, out of 6.
    assert total == PRF(1.0, 3 / 6, 2 / 3)


@pytest.mark.parametrize(
    "unanswered",
    [
        {},
        {"s2": Prediction(Status.INFRA_ERROR)},
        {"s2": Prediction(Status.SKIPPED_BUDGET)},
    ],
)
def test_an_unanswered_sample_is_missing_and_not_zero(unanswered: dict[str, Prediction]) -> None:
    samples = [make_sample("s1"), make_sample("s2")]

    evaluation = evaluate(Task.DETECTION, samples, {"s1": RIGHT} | unanswered)

    assert not evaluation.complete
    assert (len(evaluation.scores), evaluation.gold) == (1, 2)
    assert evaluation.macro("strict") == ONE
    assert evaluation.statuses == Counter(
        [Status.OK, *(prediction.status for prediction in unanswered.values())]
    )


def test_predictions_for_unknown_samples_are_ignored() -> None:
    evaluation = evaluate(Task.DETECTION, [GOLD], {"s1": RIGHT, "s9": NOTHING})

    assert len(evaluation.scores) == evaluation.gold == 1
    assert sum(evaluation.statuses.values()) == 1


def test_a_rewriting_by_hand() -> None:
    # "Ann" leaks a part of the name, which is thus not protected; the age is kept in words.
    score = score_sample(
        Task.REWRITE, GOLD, Prediction(Status.OK, rewritten="Ann, aged thirty-two.")
    )

    assert score.masked_text == MaskedTextScore(0.0, 1.0, None)
    assert score.counts["leak_part"] == Counts(1, 1, 1)
    assert score.counts["leak_readable"] == score.counts["leak_restated"] == Counts(0, 0, 1)
    assert score.metrics["exact"] == ZERO


SAMPLES = [
    make_sample("s1"),
    make_sample("s2", query=None, related=[]),
    make_sample("s3", subjects=[], related=[]),
    make_sample("s4"),
]
PREDICTIONS = {
    "s1": Prediction(
        Status.REPAIRED,
        subjects=((("Ann Lee", "PER"), ("Bo", "PER")),),
        related=("32", "Bo"),
        rewritten="Ann is 32.",
    ),
    "s2": Prediction(Status.REFUSED),
    "s3": Prediction(Status.OK, subjects=(), related=()),
    "s4": Prediction(Status.INFRA_ERROR),
}


@pytest.mark.parametrize("task", Task)
def test_compact_scores_equal_the_scores_of_an_evaluation(task: Task) -> None:
    whole = evaluate(task, SAMPLES, PREDICTIONS)
    tally = Tally(task, CompactScores())
    for sample in SAMPLES:
        tally.add(sample, PREDICTIONS[sample.id])
    compact = tally.evaluation

    assert tuple(compact.scores) == whole.scores
    assert (compact.gold, compact.complete) == (whole.gold, whole.complete)
    assert compact.statuses == whole.statuses
