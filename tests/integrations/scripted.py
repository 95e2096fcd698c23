"""A server whose answers are right in part, and the scores that our runner gives them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from pii_bench.cli import main
from pii_bench.datasets.catalog import load_dataset
from pii_bench.integrations.questions import sample_metrics
from pii_bench.prompting.strategies import DETECTION, get_strategy, load_prompt
from pii_bench.ranking.collect import rows_of
from pii_bench.ranking.stored import read_runs
from pii_bench.runs.evaluation import evaluate
from pii_bench.tasks import Task
from tests.protocol_server import ProtocolServer, Reply, api_error, completion

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pii_bench.datasets.sample import Sample
    from tests.protocol_server import ReceivedRequest

MODEL: Final = "gpt-4o"
"""A name to which Inspect talks by Chat Completions; one that it does not know, it does not."""

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
        match request.body:
            case {
                "messages": [{"role": "user", "content": str(content)}],
                "temperature": 0,
                "max_tokens": 2048,
            } if content in replies:
                return replies[content]
        # An error that no client asks again after.
        return api_error(400, "not_scripted")

    server.script(answer)


def our_scores(server: ProtocolServer, task: Task, folder: Path) -> tuple[Scores, dict[str, float]]:
    """Run `pii-bench run` against the server; the scores of each sample, and the row's means."""
    asked = ("--task", task, "--dataset", "demo", "--results", str(folder))
    where = ("--model", f"openai/{MODEL}", "--base-url", f"{server.url}/v1")
    assert main(["run", *where, *asked]) == 0
    asked_last = Task.DETECTION if task is Task.DETECTION else Task.QUERY_RELATED
    (run,) = (run for run in read_runs(folder).runs if run.task is asked_last)
    predictions = run.masking if task is Task.MASKING else run.predictions
    assert predictions is not None
    evaluation = evaluate(task, run.dataset.samples, predictions)
    (row,) = (row for row in rows_of(run) if row.task is task)
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
        completion(f"{marker}{json.dumps([*texts, 'somebody else'])}"),
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
