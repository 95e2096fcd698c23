from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from pii_bench.integrations.lm_eval import functions

FOLDER: Final = Path(functions.__file__).parent
RIGHT: Final = {
    "detection": 'Subject1{"Ann Lee": "PER"}',
    "query-related": '### Answer: ["Halifax"]',
}


def yaml_of(task: str) -> str:
    """Return the file of a task as text, because no YAML parser is installed for certain."""
    return (FOLDER / f"pii_bench_{task.replace('-', '_')}.yaml").read_text(encoding="utf-8")


@pytest.mark.parametrize("task", RIGHT)
def test_a_task_has_the_metrics_of_its_documents(task: str) -> None:
    document = {"id": "demo-0001", "dataset": "demo", "task": task, "strategy": "naive"}

    scores = functions.score(document, [RIGHT[task]])

    assert re.findall(r"metric: (\w+)", yaml_of(task)) == list(scores)


@pytest.mark.parametrize("task", RIGHT)
def test_a_task_calls_existing_functions(task: str) -> None:
    names = re.findall(r"!function functions\.(\w+)", yaml_of(task))

    assert names == ["documents", "score"]
    assert all(callable(getattr(functions, name)) for name in names)


@pytest.mark.parametrize("task", RIGHT)
def test_a_task_has_the_sampling_of_our_runner_and_no_stop_sequence(task: str) -> None:
    yaml = yaml_of(task)

    assert f"  task: {task}\n" in yaml
    assert "  temperature: 0.0\n  max_gen_toks: 2048\n" in yaml
    assert "  until: []\n" in yaml


def test_a_document_is_scored_against_its_gold() -> None:
    document = {
        "id": "demo-0001",
        "dataset": "demo",
        "task": "query-related",
        "strategy": "naive",
    }

    assert functions.score(document, ["no answer"]) == {
        "f1": 0.0,
        "rouge_l_f": 0.0,
        "precision": 0.0,
        "recall": 0.0,
    }
    assert functions.score(document, [RIGHT["query-related"]])["precision"] == 1.0
