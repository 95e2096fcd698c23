"""A server whose answers are right in part, and the scores that our runner gives them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from pii_bench.cli import main
from pii_bench.datasets.catalog import load_dataset
from pii_bench.evaluation import evaluate
from pii_bench.export.sample_metrics import sample_metrics
from pii_bench.leaderboard.collect import collect, read_run
from pii_bench.predictions.prediction import compose
from pii_bench.prompting.strategies import DETECTION, get_strategy, load_prompt
from pii_bench.tasks import Task
from tests.protocol_server import ProtocolServer, Reply, completion

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pii_bench.datasets.sample import Sample
    from tests.protocol_server import ReceivedRequest

MODEL: Final = "scripted-model"

Scores = dict[str, dict[str, float]]
"""Sample id to metric to value."""


def script(server: ProtocolServer, cut: str) -> None:
    """Answer naive and detection prompts about demo.

    Args:
        server: what is asked.
        cut: the answer that ends at the limit of tokens.
    """
    replies: dict[str, Reply] = {}
    for number, sample in enumerate(load_dataset("demo").samples):
        related = [related.text for related in sample.related]
        asked = load_prompt(get_strategy("naive")).messages(sample)[0].content
        replies[asked] = _reply(number, "### Answer: ", related, cut)
        asked = load_prompt(DETECTION).messages(sample)[0].content
        replies[asked] = _detected(number, sample)

    def answer(request: ReceivedRequest) -> Reply:
        (message,) = request.body["messages"]
        assert message["role"] == "user"
        assert (request.body["temperature"], request.body["max_tokens"]) == (0, 2048)
        return replies[message["content"]]

    server.script(answer)


def our_scores(server: ProtocolServer, task: Task, folder: Path) -> tuple[Scores, dict[str, float]]:
    """Run `pii-bench run` against the server; the scores of each sample, and the row's means."""
    asked = ("--task", task, "--dataset", "demo", "--results", str(folder))
    where = ("--model", f"openai/{MODEL}", "--base-url", f"{server.url}/v1")
    assert main(["run", *where, *asked]) == 0
    runs = {run.manifest.system.task: run for run in map(read_run, folder.rglob("*.run.json"))}
    if task is Task.MASKING:
        detected, related = (
            runs[part].predictions for part in (Task.DETECTION, Task.QUERY_RELATED)
        )
        predictions = {name: compose(detected[name], related[name]) for name in related}
    else:
        predictions = dict(runs[task].predictions)
    evaluation = evaluate(task, load_dataset("demo").samples, predictions)
    (row,) = (row for row in collect(folder).rows if row.task is task)
    scores = {score.id: sample_metrics(task, score) for score in evaluation.scores}
    return scores, means_of(scores, row.metrics)


def means_of(scores: Scores, means: Mapping[str, float]) -> dict[str, float]:
    """Those of some figures that are means of the samples' scores."""
    return {name: means[name] for name in next(iter(scores.values()))}


def _reply(number: int, marker: str, texts: list[str], cut: str) -> Reply:
    right = json.dumps(texts, ensure_ascii=False)
    guillemets = ", ".join(f"«{text}»" for text in texts)
    replies = (
        completion(f"{marker}{right}"),
        completion(f"{marker}{json.dumps([*texts[1:], 'somebody else'])}"),
        completion(f"{marker}[{guillemets}]"),
        completion("There is nothing that I would call an answer."),
        completion(None, refusal="I'm sorry, I can't help with that."),
        completion(f"<think>Not `[]`.</think>\n\nThought.\n\n{marker}{right}"),
        completion("", finish_reason="content_filter"),
        completion(cut, finish_reason="length"),
    )
    return replies[number % len(replies)]


def _detected(number: int, sample: Sample) -> Reply:
    lines = [
        f"Subject{place}{json.dumps({e.text: e.type for e in subject.entities[number % 3 :]})}"
        for place, subject in enumerate(sample.subjects, start=1)
    ]
    return completion("\n".join(lines))
