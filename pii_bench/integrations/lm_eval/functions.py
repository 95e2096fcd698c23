"""The functions that the YAML files in this folder call.

The harness loads the module again for each of them, and passes all of `--model_args` and
`--metadata` to a task. It does not tell why the model stopped: an incomplete answer is parsed as
far as possible, while our runner counts it as `truncated` or `filtered`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pii_bench.integrations.questions import load_questions, score_answers
from pii_bench.models.base import Completion

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import datasets


def documents(
    *, task: str, dataset: str, strategy: str, **_: object
) -> Mapping[str, datasets.Dataset]:
    """Return the documents of a task as its only split, `test`.

    Args:
        task: `detection` or `query-related`; the harness has no tasks with two prompts.
        dataset: see `load_questions`.
        strategy: see `load_questions`.

    Raises:
        PiiBenchError: see `load_questions`.
    """
    from datasets import Dataset

    questions = load_questions(dataset, task, strategy)
    return {
        "test": Dataset.from_list(
            [
                {
                    "id": sample.id,
                    "prompt": questions.contents(sample)[0],
                    "task": task,
                    "dataset": dataset,
                    "strategy": strategy,
                }
                for sample in questions.samples.values()
            ]
        )
    }


def score(document: Mapping[str, Any], answers: Sequence[str]) -> dict[str, float]:
    """Return the scores of one document, by the names of the YAML's metrics."""
    questions = load_questions(document["dataset"], document["task"], document["strategy"])
    completions = [Completion(answer) for answer in answers]
    _, metrics = score_answers(questions, document["id"], completions)
    return metrics
