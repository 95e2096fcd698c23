from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from pii_bench.integrations.lm_eval import functions

FOLDER: Final = Path(functions.__file__).parent
RIGHT: Final = {
    "detection": 'Subject1{"Halifax": "LOC"}',
    "query-related": '### Answer: ["Halifax"]',
}


@pytest.mark.parametrize("task", RIGHT)
def test_a_task_has_our_metrics_functions_sampling_and_scores(task: str) -> None:
    # As text, because no YAML parser is installed for certain.
    yaml = (FOLDER / f"pii_bench_{task.replace('-', '_')}.yaml").read_text(encoding="utf-8")
    document = {"id": "demo-0001", "dataset": "demo", "task": task, "strategy": "naive"}

    scores = functions.score(document, [RIGHT[task]])

    assert re.findall(r"metric: (\w+)", yaml) == list(scores)
    assert scores["precision"] == 1.0
    assert set(functions.score(document, ["no answer"]).values()) == {0.0}
    assert re.findall(r"!function functions\.(\w+)", yaml) == ["documents", "score"]
    assert callable(functions.documents)
    assert f"  task: {task}\n" in yaml
    assert "  temperature: 0.0\n  max_gen_toks: 2048\n" in yaml
    # No stop sequence.
    assert "  until: []\n" in yaml
