from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pii_bench.errors import PiiBenchError, UnknownNameError
from pii_bench.integrations.questions import load_questions, sample_metrics, score_answers
from pii_bench.models.base import Completion, Finish
from pii_bench.prompting.strategies import DETECTION, get_strategy, load_prompt
from pii_bench.runs.evaluation import score_sample
from pii_bench.systems.predictions import Prediction
from pii_bench.tasks import Status, Task
from tests.builders import make_sample, sample_record, write_lines
from tests.ranking.stored_runs import ANN

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def ann(tmp_path: Path) -> str:
    """A file with a sample of Ann Lee, 32, who asks about her age, and one without a query."""
    silent = sample_record("silent", query=None, related=[])
    return str(write_lines(tmp_path / "ann.jsonl", [sample_record("s1"), silent]))


def test_each_task_has_its_prompts_in_order(ann: str) -> None:
    naive, detection = load_prompt(get_strategy("naive")), load_prompt(DETECTION)

    prompts = {task: load_questions(ann, task, "naive").prompts for task in Task}

    assert prompts == {
        Task.DETECTION: (detection,),
        Task.QUERY_RELATED: (naive,),
        Task.MASKING: (detection, naive),
        Task.REWRITE: (load_prompt(get_strategy("rewrite")),),
    }
    questions = load_questions(ann, "masking", "naive")
    sample = questions.samples["s1"]
    assert questions.contents(sample) == tuple(
        prompt.messages(sample)[0].content for prompt in (detection, naive)
    )


def test_only_detection_includes_samples_without_a_query(ann: str) -> None:
    samples = {task: list(load_questions(ann, task, "naive").samples) for task in Task}

    assert samples == {
        Task.DETECTION: ["s1", "silent"],
        Task.QUERY_RELATED: ["s1"],
        Task.MASKING: ["s1"],
        Task.REWRITE: ["s1"],
    }


def test_a_dataset_without_queries_has_only_detection(tmp_path: Path) -> None:
    silent = sample_record("silent", query=None, related=[])
    path = str(write_lines(tmp_path / "silent.jsonl", [silent]))

    assert list(load_questions(path, "detection", "naive").samples) == ["silent"]
    with pytest.raises(
        PiiBenchError, match=r"no sample with a query, which masking needs \(allowed: detection\)"
    ):
        load_questions(path, "masking", "naive")


def test_an_unknown_task_gets_a_suggestion(ann: str) -> None:
    with pytest.raises(UnknownNameError, match=r"'maskin'; did you mean 'masking'\?"):
        load_questions(ann, "maskin", "naive")


def test_detection_also_takes_the_strategy_json(ann: str) -> None:
    questions = load_questions(ann, "detection", "json")

    answer = Completion('{"PII": {"PER": ["Ann Lee"], "DEM": ["32"]}}')

    assert questions.prompts == (load_prompt(get_strategy("json")),)
    assert score_answers(questions, "s1", [answer])[1] == {"ent_f1": 1.0}
    with pytest.raises(PiiBenchError, match="'json' answers detection, not masking"):
        load_questions(ann, "masking", "json")


def test_a_strategy_with_several_draws_is_refused(ann: str) -> None:
    with pytest.raises(
        PiiBenchError, match=r"draws several times.*\(allowed: naive, .*, json, rewrite\)"
    ):
        load_questions(ann, "query-related", "self-consistency-vote")


def test_an_answer_is_parsed_and_scored(ann: str) -> None:
    questions = load_questions(ann, "query-related", "naive")

    answer = Completion("### Answer: ['32', 'Ann Lee']")
    prediction, metrics = score_answers(questions, "s1", [answer])

    assert (prediction.status, prediction.related) == (
        Status.REPAIRED,
        ("32", "Ann Lee"),
    )
    assert metrics == {"f1": 2 / 3, "rouge_l_f": 2 / 3, "precision": 0.5, "recall": 1.0}


def test_masking_composes_both_answers(ann: str) -> None:
    questions = load_questions(ann, "masking", "naive")

    answers = [Completion(ANN), Completion('### Answer: ["32"]')]
    _, metrics = score_answers(questions, "s1", answers)

    assert metrics == dict.fromkeys(
        [
            *("f1", "rouge_l_f", "precision", "recall"),
            *("protection", "retention", "weighted_protection"),
        ],
        1.0,
    )


def test_a_truncated_answer_scores_0(ann: str) -> None:
    questions = load_questions(ann, "query-related", "naive")
    cut = '### Answer: ["32", "An'

    prediction, metrics = score_answers(questions, "s1", [Completion(cut, Finish.LENGTH)])

    assert prediction.status is Status.TRUNCATED
    assert metrics["f1"] == 0.0


def test_a_missing_answer_is_an_error(ann: str) -> None:
    with pytest.raises(ValueError, match="shorter"):
        score_answers(load_questions(ann, "masking", "naive"), "s1", [Completion(ANN)])


def test_a_failed_detection_scores_0() -> None:
    score = score_sample(Task.DETECTION, make_sample(), Prediction(Status.REFUSED))

    assert sample_metrics(Task.DETECTION, score) == dict.fromkeys(
        ("strict_f1", "ent_f1", "rouge_l_f", "precision", "recall", "ent_matched_f1"), 0.0
    )
