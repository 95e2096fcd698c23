"""The line that a score travels with, in the manner of sacreBLEU (spec, "Signature")."""

from __future__ import annotations

import platform
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import pii_bench
from pii_bench.escaping import visible
from pii_bench.prompting.parsing import PARSER
from pii_bench.scorer import MATCHER, NORMALISER, ROUGE_L_TOKENISER
from pii_bench.scorer.masked_text import LEAKS
from pii_bench.tasks import Task

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True, slots=True)
class Signature:
    """Everything needed to get the same score again.

    Attributes:
        dataset: its name.
        dataset_sha256: hash of its file.
        task: the task.
        strategy: name of the prompt or strategy; empty for predictions made elsewhere.
        prompts: prompt name to hash (empty where there is no text), for every prompt whose
            answers were used.
        model: the model asked for; empty for predictions made elsewhere.
        returned: the models that the provider said it used.
        settings: endpoint, weights, sampling.
    """

    dataset: str
    dataset_sha256: str
    task: Task
    strategy: str = ""
    prompts: Mapping[str, str] = field(default_factory=dict)
    model: str = ""
    returned: Sequence[str] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        parts = {
            "data": f"{self.dataset}@{self.dataset_sha256[:12]}",
            "task": str(self.task),
            "strategy": self.strategy,
            "prompt": "+".join(
                f"{name}@{sha[:12]}" if sha else name for name, sha in self.prompts.items()
            ),
            "model": self.model,
            "returned": "+".join(sorted(self.returned)),
            **{key: str(value) for key, value in sorted(self.settings.items())},
            "norm": NORMALISER,
            "match": MATCHER,
            "rougeL": ROUGE_L_TOKENISER,
            "leaks": LEAKS if self.task is Task.REWRITE else "",
            "parser": PARSER if self.prompts else "",
            "pii_bench": pii_bench.__version__,
            "scipy": version("scipy"),
            "rapidfuzz": version("rapidfuzz"),
            "python": platform.python_version(),
        }
        # Whatever a server calls its model, it stays one value of the line.
        return "|".join(
            f"{key}:{visible(value).replace('|', '%7C')}" for key, value in parts.items() if value
        )
