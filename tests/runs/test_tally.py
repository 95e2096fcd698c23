from __future__ import annotations

import pytest

from pii_bench.runs.evaluation import CompactScores, Tally, evaluate
from pii_bench.runs.predictions import Prediction
from pii_bench.tasks import Status, Task
from tests.builders import make_sample

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
    ),
    "s2": Prediction(Status.REFUSED),
    "s3": Prediction(Status.OK, subjects=(), related=()),
    "s4": Prediction(Status.INFRA_ERROR),
}


@pytest.mark.parametrize("task", Task)
def test_they_are_the_scores_that_went_in(task: Task) -> None:
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


def test_without_any_there_is_none() -> None:
    scores = CompactScores()

    assert list(scores) == []
    with pytest.raises(IndexError):
        scores[0]
