"""The real Inspect AI and lm-evaluation-harness, with a server whose answers are partly right."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

import pii_bench.integrations
from pii_bench.cli import main
from pii_bench.datasets.catalog import load_dataset
from pii_bench.integrations.questions import sample_metrics
from pii_bench.prompting.strategies import DETECTION, get_strategy, load_prompt
from pii_bench.ranking.stored import read_runs, rows_of
from pii_bench.runs.evaluation import evaluate
from pii_bench.tasks import Status, Task
from tests.builders import read_lines
from tests.cli.command import run_python
from tests.protocol_server import Reply, api_error, completion

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pii_bench.datasets.sample import Sample
    from tests.protocol_server import ProtocolServer, ReceivedRequest

MODEL: Final = "gpt-4o"
"""Inspect uses Chat Completions only for models that it knows."""

Scores = dict[str, dict[str, float]]
"""By sample id and metric."""


def script(server: ProtocolServer, cut: str) -> None:
    """Script answers to the naive and detection prompts about demo; `cut` ends at the limit."""
    replies: dict[str, Reply] = {}
    for number, sample in enumerate(load_dataset("demo").samples):
        related = [related.text for related in sample.related]
        question = load_prompt(get_strategy("naive")).messages(sample)[0].content
        replies[question] = _reply(number, related, cut)
        question = load_prompt(DETECTION).messages(sample)[0].content
        replies[question] = _detection_reply(number, sample)

    def answer(request: ReceivedRequest) -> Reply:
        match request.body:
            case {
                "messages": [{"role": "user", "content": str(content)}],
                "temperature": 0,
                "max_tokens": 2048,
            } if content in replies:
                return replies[content]
        # An error that no client retries.
        return api_error(400, "not_scripted")

    server.script(answer)


def our_scores(server: ProtocolServer, task: Task, folder: Path) -> tuple[Scores, dict[str, float]]:
    """Run `pii-bench run`; return the samples' scores and the row's means."""
    data = ("--task", task, "--dataset", "demo", "--results", str(folder))
    model = ("--model", f"openai/{MODEL}", "--base-url", f"{server.url}/v1")
    assert main(["run", *model, *data]) == 0
    last_task = Task.DETECTION if task is Task.DETECTION else Task.QUERY_RELATED
    (run,) = (run for run in read_runs(folder).runs if run.task is last_task)
    predictions = run.masking if task is Task.MASKING else run.predictions
    assert predictions is not None
    evaluation = evaluate(task, run.dataset.samples, predictions)
    (row,) = (row for row in rows_of(run) if row.task is task)
    scores = {score.id: sample_metrics(task, score) for score in evaluation.scores}
    return scores, means_of(scores, row.metrics)


def means_of(scores: Scores, means: Mapping[str, float]) -> dict[str, float]:
    """Return the means that the samples have scores for."""
    return {name: means[name] for name in next(iter(scores.values()))}


def _reply(number: int, texts: list[str], cut: str) -> Reply:
    marker = "### Answer: "
    right = json.dumps(texts, ensure_ascii=False)
    guillemets = ", ".join(f"«{text}»" for text in texts)
    replies = (
        completion(f"{marker}{right}"),
        completion(f"{marker}{json.dumps([*texts, 'somebody else'])}"),
        completion(f"{marker}[{guillemets}]"),
        completion("There is nothing that I would call an answer."),
        completion(None, refusal="I'm sorry, I can't help with that."),
        completion(f"<think>Not `[]`.</think>\n\nThought.\n\n{marker}{right}"),
        completion("", finish_reason="content_filter"),
        completion(cut, finish_reason="length"),
    )
    return replies[number % len(replies)]


def _detection_reply(number: int, sample: Sample) -> Reply:
    lines = [
        f"Subject{index}{json.dumps({e.text: e.type for e in subject.entities[number % 3 :]})}"
        for index, subject in enumerate(sample.subjects, start=1)
    ]
    return completion("\n".join(lines))


pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

FOLDER: Final = Path(pii_bench.integrations.__file__).parent

CUT_LIST: Final = '### Answer: ["Halifax", "surv'
CUT_THOUGHT: Final = "They ask for what"


def needs(package: str, extra: str) -> None:
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed: run `pip install -e '.[{extra}]'`")


def inspect_log(task: Task, model: str, *options: str, cwd: Path, **variables: str) -> Any:
    """Run a task in Inspect; return its log."""
    arguments = ("dataset=demo", "strategy=naive", f"task={task}")
    run_python(
        *("-m", "inspect_ai", "eval", f"{FOLDER / 'inspect_ai.py'}@pii_bench"),
        *(part for argument in arguments for part in ("-T", argument)),
        *("--model", model, "--display", "plain", *options),
        *("--log-dir", "logs", "--log-format", "json"),
        cwd=cwd,
        **variables,
    )
    (path,) = (cwd / "logs").glob("*.json")
    log = json.loads(path.read_text(encoding="utf-8"))
    assert log["status"] == "success"
    return log


def inspect_scores(
    server: ProtocolServer, task: Task, folder: Path
) -> tuple[Scores, dict[str, float]]:
    log = inspect_log(
        *(task, f"openai/{MODEL}"),
        cwd=folder,
        OPENAI_BASE_URL=f"{server.url}/v1",
        OPENAI_API_KEY="none",
    )
    scores = {s["id"]: s["scores"]["pii_bench_scorer"]["value"] for s in log["samples"]}
    means = {s["name"]: s["metrics"]["mean"]["value"] for s in log["results"]["scores"]}
    return scores, means_of(scores, means)


def lm_eval_scores(
    server: ProtocolServer, task: Task, folder: Path
) -> tuple[Scores, dict[str, float]]:
    name = f"pii_bench_{task.name.lower()}"
    run_python(
        *("-m", "lm_eval", "run", "--model", "local-chat-completions", "--apply_chat_template"),
        *("--model_args", f"model={MODEL},base_url={server.url}/v1/chat/completions"),
        *("--include_path", str(FOLDER / "lm_eval"), "--tasks", name),
        *("--metadata", json.dumps({"dataset": "demo"})),
        *("--output_path", "logs", "--log_samples"),
        cwd=folder,
        HF_HUB_OFFLINE="1",
        HF_HOME=str(folder / "hf"),
    )
    (path,) = (folder / "logs").rglob(f"samples_{name}_*.jsonl")
    lines = read_lines(path)
    scores = {
        line["doc"]["id"]: {metric: line[metric] for metric in line["metrics"]} for line in lines
    }
    (path,) = (folder / "logs").rglob("results_*.json")
    results = json.loads(path.read_text(encoding="utf-8"))["results"][name]
    means = {metric.removesuffix(",none"): value for metric, value in results.items()}
    return scores, means_of(scores, means)


def assert_same(
    theirs: tuple[Scores, dict[str, float]], ours: tuple[Scores, dict[str, float]]
) -> None:
    assert theirs[0] == ours[0]
    assert theirs[1] == pytest.approx(ours[1], abs=1e-12)
    # If all were right or all wrong, equal scores would prove little.
    assert 0 < ours[1]["recall"] < 1


@pytest.mark.parametrize("task", [task for task in Task if task is not Task.REWRITE])
def test_inspect_ai_gives_the_scores_of_our_runner(
    task: Task, protocol_server: ProtocolServer, tmp_path: Path
) -> None:
    needs("inspect_ai", "inspect")
    script(protocol_server, CUT_LIST)

    theirs = inspect_scores(protocol_server, task, tmp_path)

    assert_same(theirs, our_scores(protocol_server, task, tmp_path / "results"))


@pytest.mark.parametrize("task", [Task.QUERY_RELATED, Task.MASKING])
def test_a_sample_that_reaches_a_limit_of_inspect_ai_counts_as_truncated(
    task: Task, tmp_path: Path
) -> None:
    needs("inspect_ai", "inspect")

    log = inspect_log(task, "mockllm/model", "--message-limit", "1", cwd=tmp_path)

    scores = [sample["scores"]["pii_bench_scorer"] for sample in log["samples"]]
    assert len(scores) == 12
    assert {score["metadata"]["status"] for score in scores} == {Status.TRUNCATED}
    assert {score["value"]["f1"] for score in scores} == {0.0}


@pytest.mark.parametrize("task", [Task.DETECTION, Task.QUERY_RELATED])
def test_lm_evaluation_harness_gives_the_scores_of_our_runner(
    task: Task, protocol_server: ProtocolServer, tmp_path: Path
) -> None:
    needs("lm_eval", "lm-eval")
    script(protocol_server, CUT_THOUGHT)

    theirs = lm_eval_scores(protocol_server, task, tmp_path)

    assert_same(theirs, our_scores(protocol_server, task, tmp_path / "results"))
