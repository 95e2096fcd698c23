from __future__ import annotations

import pytest

from pii_bench.runs.evaluation import CompactScores, Evaluation, Tally, evaluate, score_sample
from pii_bench.scorer import PRF, Counts, MaskedTextScore
from pii_bench.systems.predictions import Prediction
from pii_bench.tasks import Status, Task
from tests.builders import make_sample

# Ann Lee (PER) and 32 (DEM), of which 32 is related to the query.
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
def test_gold_as_prediction_is_perfect(task: Task) -> None:
    score = score_sample(task, GOLD, RIGHT)

    assert set(score.metrics.values()) == {ONE}
    assert score.hallucinated == 0


@pytest.mark.parametrize("task", Task)
@pytest.mark.parametrize("status", ["malformed", "truncated", "empty", "refused", "filtered"])
def test_a_failure_of_the_model_is_zero_even_where_gold_is_empty(task: Task, status: str) -> None:
    empty = make_sample(subjects=[], related=[])

    for sample in (GOLD, empty):
        evaluation = evaluate(task, [sample], {"s1": Prediction(Status(status))})
        assert evaluation.complete
        assert set(evaluation.scores[0].metrics.values()) == {ZERO}


@pytest.mark.parametrize("task", Task)
def test_nothing_found_where_nothing_is_is_perfect(task: Task) -> None:
    score = score_sample(task, make_sample(subjects=[], related=[]), NOTHING)

    assert set(score.metrics.values()) == {ONE}


def test_detection_by_hand() -> None:
    # One of two entities: P = 1, R = 1/2, F1 = 2/3.
    score = score_sample(Task.DETECTION, GOLD, HALF)

    assert score.metrics["strict"] == PRF(1.0, 1 / 2, 2 / 3)
    assert score.metrics["entity"] == score.metrics["entity_matched"] == PRF(1.0, 1 / 2, 2 / 3)


def test_query_related_by_hand() -> None:
    # 32 and Bo against 32: P = 1/2, R = 1.
    assert score_sample(Task.QUERY_RELATED, GOLD, HALF).metrics["exact"] == PRF(1 / 2, 1.0, 2 / 3)


def test_masking_by_hand() -> None:
    # Gold masks Ann Lee; so does {Ann Lee} minus {32, Bo}.
    assert score_sample(Task.MASKING, GOLD, HALF).metrics["exact"] == ONE
    # Masking both is one too many.
    both = Prediction(Status.OK, subjects=RIGHT.subjects, related=())
    assert score_sample(Task.MASKING, GOLD, both).metrics["exact"] == PRF(1 / 2, 1.0, 2 / 3)


def test_texts_that_do_not_stand_in_the_description_are_counted() -> None:
    invented = Prediction(
        Status.OK,
        subjects=((("Ann  Lee", "PER"), ("33", "DEM")), (("33", "DEM"), ("ann lee", "PER"))),
        related=("32", "33", "Ann Lee is"),
    )

    found = {task: score_sample(task, GOLD, invented) for task in Task}

    # Ann Lee stands there, whatever the spaces; 33 counts once; case counts.
    assert (found[Task.DETECTION].predicted, found[Task.DETECTION].hallucinated) == (3, 2)
    assert (found[Task.QUERY_RELATED].predicted, found[Task.QUERY_RELATED].hallucinated) == (3, 1)
    assert (found[Task.MASKING].predicted, found[Task.MASKING].hallucinated) == (2, 1)


def test_the_mean_is_over_samples_and_micro_over_counts() -> None:
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


def test_statuses_and_repairs_are_counted() -> None:
    samples = [make_sample(f"s{number}") for number in range(1, 5)]
    predictions = {
        "s1": RIGHT,
        "s2": Prediction(Status.REPAIRED, related=(), repairs=("no-marker", "unquoted")),
        "s3": Prediction(Status.REPAIRED, related=(), repairs=("unquoted",)),
        "s4": Prediction(Status.EMPTY),
    }

    evaluation = evaluate(Task.QUERY_RELATED, samples, predictions)

    assert evaluation.statuses == {Status.OK: 1, Status.REPAIRED: 2, Status.EMPTY: 1}
    assert evaluation.repairs == {"no-marker": 1, "unquoted": 2}


def incomplete(prediction: Prediction | None) -> Evaluation:
    predictions = {"s1": RIGHT} | ({} if prediction is None else {"s2": prediction})
    return evaluate(Task.DETECTION, [make_sample("s1"), make_sample("s2")], predictions)


@pytest.mark.parametrize(
    "prediction", [None, Prediction(Status.INFRA_ERROR), Prediction(Status.SKIPPED_BUDGET)]
)
def test_a_sample_that_was_never_answered_is_missing_and_not_zero(
    prediction: Prediction | None,
) -> None:
    evaluation = incomplete(prediction)

    assert not evaluation.complete
    assert (len(evaluation.scores), evaluation.gold) == (1, 2)
    assert evaluation.macro("strict") == ONE


def test_without_a_scored_sample_there_is_no_mean() -> None:
    evaluation = evaluate(Task.DETECTION, [GOLD], {})

    assert evaluation.macro("strict") is None
    assert evaluation.micro("strict") is None


def test_predictions_for_other_samples_count_nowhere() -> None:
    evaluation = evaluate(Task.DETECTION, [GOLD], {"s1": RIGHT, "s9": NOTHING})

    assert len(evaluation.scores) == evaluation.gold == 1
    assert sum(evaluation.statuses.values()) == 1


def test_a_rewriting_by_hand() -> None:
    # The name is told in part, so it is not protected; the age is kept in another form.
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
        repairs=("no-marker",),
        rewritten="Ann is 32.",
    ),
    "s2": Prediction(Status.REFUSED),
    "s3": Prediction(Status.OK, subjects=(), related=()),
    "s4": Prediction(Status.INFRA_ERROR),
}


@pytest.mark.parametrize("task", Task)
def test_scores_in_little_memory_are_those_that_went_in(task: Task) -> None:
    whole = evaluate(task, SAMPLES, PREDICTIONS)
    tally = Tally(task, CompactScores())
    for sample in SAMPLES:
        tally.add(sample, PREDICTIONS[sample.id])
    compact = tally.evaluation

    assert tuple(compact.scores) == whole.scores
    assert compact.scores[0] == whole.scores[0]
    assert compact.scores[-1] == whole.scores[-1]
    assert list(compact.scores[1:]) == list(whole.scores[1:])
    assert (compact.gold, compact.complete) == (whole.gold, whole.complete)
    assert (compact.statuses, compact.repairs) == (whole.statuses, whole.repairs)
    for metric in whole.scores[0].metrics:
        assert compact.macro(metric) == whole.macro(metric)
    assert (compact.predicted, compact.hallucinated) == (whole.predicted, whole.hallucinated)


def test_without_any_score_there_is_none() -> None:
    scores = CompactScores()

    assert list(scores) == []
    with pytest.raises(IndexError):
        scores[0]
