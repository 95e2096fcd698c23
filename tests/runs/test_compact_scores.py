from __future__ import annotations

import pytest

from pii_bench.datasets.catalog import load_dataset
from pii_bench.prompting.outcome import Status
from pii_bench.runs.compact_scores import CompactScores
from pii_bench.runs.evaluation import score_sample
from pii_bench.runs.predictions.prediction import Prediction
from pii_bench.tasks import Task


@pytest.mark.parametrize("task", Task)
@pytest.mark.parametrize("status", [Status.OK, Status.REFUSED])
def test_what_is_kept_in_little_memory_comes_back_whole(task: Task, status: Status) -> None:
    kept, whole = CompactScores(), []
    for sample in load_dataset("demo").samples:
        gold = tuple(tuple((e.text, e.type) for e in s.entities[1:]) for s in sample.subjects)
        related = tuple(need.text for need in sample.related)
        told = Prediction(status, gold, related) if status.answered else Prediction(status)
        score = score_sample(task, sample, told)
        kept.append(score)
        whole.append(score)

    assert list(kept) == whole
    assert (len(kept), kept[3], kept[-2:]) == (12, whole[3], whole[-2:])
