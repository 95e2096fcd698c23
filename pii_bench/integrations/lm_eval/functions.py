"""What the YAML files next to this module call.

The harness loads the module anew for every function that it names, and gives a task all of
`--model_args` and `--metadata`. It passes on the text of an answer, not why the model stopped: an
answer that was cut off is read as far as it goes, where our runner calls it `truncated`.
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
    """The documents of a task as its only split, `test`.

    Args:
        task: `detection` or `query-related`; masking asks twice, which no task here can.
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
    """The figures of one document, by the names of the YAML's metrics."""
    questions = load_questions(document["dataset"], document["task"], document["strategy"])
    completions = [Completion(answer) for answer in answers]
    return dict(score_answers(questions, document["id"], completions).metrics)
