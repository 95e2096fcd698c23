from __future__ import annotations

from pii_bench.integrations.every_eval_ever.sample_metrics import sample_metrics
from pii_bench.runs.evaluation import score_sample
from pii_bench.runs.predictions.prediction import Prediction
from pii_bench.tasks import Status, Task
from tests.builders import make_sample


def test_a_sample_has_the_figures_of_its_task_that_are_means() -> None:
    prediction = Prediction(Status.OK, related=("32", "Ann Lee"))
    score = score_sample(Task.QUERY_RELATED, make_sample(), prediction)

    assert sample_metrics(Task.QUERY_RELATED, score) == {
        "f1": 2 / 3,
        "rouge_l_f": 2 / 3,
        "precision": 0.5,
        "recall": 1.0,
    }


def test_a_failed_detection_scores_0_in_all() -> None:
    score = score_sample(Task.DETECTION, make_sample(), Prediction(Status.REFUSED))

    assert sample_metrics(Task.DETECTION, score) == dict.fromkeys(
        ("strict_f1", "ent_f1", "rouge_l_f", "precision", "recall", "ent_matched_f1"), 0.0
    )
