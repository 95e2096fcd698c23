from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_bench.datasets.catalog import Dataset
from pii_bench.integrations.every_eval_ever_figures import METRICS, ScoredTask, sample_lines
from pii_bench.models.base import Completion, Usage
from pii_bench.ranking import rows
from pii_bench.ranking.rows import Row, Source
from pii_bench.runs.evaluation import evaluate
from pii_bench.runs.responses import read_response
from pii_bench.systems.predictions import Prediction
from pii_bench.tasks import Status, Task
from tests.builders import make_sample
from tests.integrations.schemas import valid_sample

if TYPE_CHECKING:
    from collections.abc import Mapping


ANN_LEE = Prediction(Status.OK, subjects=((("Ann Lee", "PER"), ("32", "DEM")),), related=("32",))


def test_every_column_of_the_leaderboard_has_a_description() -> None:
    assert tuple(METRICS) == rows.METRICS


def test_only_rates_of_errors_are_better_when_lower() -> None:
    assert [name for name, metric in METRICS.items() if metric.lower_is_better] == [
        *("hallucination_rate", "collateral", "leak_readable", "leak_restated", "leak_part"),
    ]


def lines(
    task: Task,
    *completions: Completion,
    metrics: Mapping[str, float] | None = None,
    prediction: Prediction = ANN_LEE,
) -> list[dict[str, Any]]:
    """Return the lines of one sample of a dataset that ships."""
    demo = Dataset("demo", "demo", "0" * 64, (make_sample(),))
    row = Row(Source.RUN, "m", "naive", "demo", task, False, metrics or {"f1": 1.0})
    predictions = {"s1": prediction}
    evaluation = evaluate(task, demo.samples, predictions)
    scored = ScoredTask(row, demo, evaluation, predictions, {"s1": completions})
    head = {"schema_version": "0.3.0", "evaluation_id": "id", "model_id": "m"}
    return [valid_sample(line) for line in sample_lines(scored, head, "id")]


def test_only_metrics_of_the_row_have_lines() -> None:
    shown = lines(Task.DETECTION, metrics={"ent_f1": 1.0, "micro_ent_f1": 1.0})

    assert [line["evaluation_result_id"] for line in shown] == ["id#detection.ent_f1"]


@pytest.mark.parametrize(
    ("task", "raw", "reference", "answer"),
    [
        (
            Task.DETECTION,
            "Ann Lee is 32.",
            ['[["Ann Lee", "PER"], ["32", "DEM"]]'],
            '[[["Ann Lee", "PER"], ["32", "DEM"]]]',
        ),
        (Task.QUERY_RELATED, "Ann Lee is 32.\n\nAm I old?", ["32"], '["32"]'),
        (Task.MASKING, "Ann Lee is 32.\n\nAm I old?", ["Ann Lee"], '["Ann Lee"]'),
    ],
)
def test_each_task_has_input_reference_and_answer(
    task: Task, raw: str, reference: list[str], answer: str
) -> None:
    metrics = {"strict_f1": 1.0} if task is Task.DETECTION else None
    (line,) = lines(task, metrics=metrics)

    assert line["input"] == {"raw": raw, "reference": reference}
    assert line["answer_attribution"][0]["extracted_value"] == answer


def test_the_hash_includes_input_and_reference() -> None:
    (line,) = lines(Task.QUERY_RELATED)

    written = rb'{"raw":"Ann Lee is 32.\n\nAm I old?","reference":["32"]}'
    assert line["sample_hash"] == hashlib.sha256(written).hexdigest()


def test_tokens_are_summed_over_the_draws_and_reasoning_is_separate() -> None:
    draws = [
        Completion("said", usage=Usage(10, 2, 1, 4), reasoning="thought"),
        Completion("", usage=Usage(10, 3)),
    ]

    (line,) = lines(Task.QUERY_RELATED, *draws)

    assert line["token_usage"] == {
        "input_tokens": 20,
        "output_tokens": 5,
        "total_tokens": 25,
        "input_tokens_cache_read": 4,
        "reasoning_tokens": 1,
    }
    assert line["output"] == {"raw": ["said", ""], "reasoning_trace": ["thought"]}


def test_tokens_are_unknown_if_one_completion_has_none() -> None:
    (line,) = lines(Task.QUERY_RELATED, Completion("", usage=Usage(10, 2)), Completion(""))

    assert (line["token_usage"], line["output"]["reasoning_trace"]) == (None, None)


def test_a_related_text_in_another_form_is_not_masked() -> None:
    subjects = ((("Ann  Lee", "PER"), ("32", "DEM")),)
    read = Prediction(Status.OK, subjects=subjects, related=("Ann Lee",))

    (line,) = lines(Task.MASKING, prediction=read)

    assert line["answer_attribution"][0]["extracted_value"] == '["32"]'


@given(
    st.sampled_from([Task.DETECTION, Task.QUERY_RELATED]),
    st.text() | st.from_regex(r'### Answer: \[("[^"]*", )*"32"\]|Subject1\{"[^"]*": "PER"\}'),
)
def test_any_answer_makes_valid_lines_that_survive_json(task: Task, answer: str) -> None:
    completion = Completion(answer)
    metrics = {"strict_f1": 0.0, "f1": 0.0}

    made = lines(task, completion, metrics=metrics, prediction=read_response(task, completion))

    assert json.loads(json.dumps(made, ensure_ascii=False)) == made
