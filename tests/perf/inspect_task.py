"""The requests as a task of Inspect AI, run by its own command in its own environment."""

from __future__ import annotations

import os

from inspect_ai import Task, task
from inspect_ai.dataset import FieldSpec, json_dataset
from inspect_ai.model import GenerateConfig
from inspect_ai.scorer import includes
from inspect_ai.solver import generate


@task  # type: ignore[untyped-decorator]
def requests() -> Task:
    fields = FieldSpec(input="prompt", target="target", id="id")
    return Task(
        dataset=json_dataset(os.environ["PERF_REQUESTS"], fields),
        solver=generate(),
        scorer=includes(),
        config=GenerateConfig(temperature=0.0, max_tokens=2048),
    )
