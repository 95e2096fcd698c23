"""A cache of scores next to the responses of a run.

`<dataset>.scores.npz` contains the numbers of `CompactScores` for each task. Its key is a hash of
the responses, the manifest, the dataset, our code, and the libraries that it scores with; a file
with another key is ignored.
"""

from __future__ import annotations

import hashlib
import json
import os
from array import array
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from zipfile import BadZipFile
from zlib import error

import pii_bench
from pii_bench.files import replacing, writing
from pii_bench.runs.evaluation import CompactScores, Evaluation
from pii_bench.tasks import Status, Task

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pii_bench.runs.store import RunFiles


@dataclass(frozen=True, slots=True)
class RunScores:
    """The scores of a run.

    Attributes:
        evaluations: by task: that of the run, and masking if there is a detection run.
        returned: model ids that the provider returned.
        unreadable: lines of the responses that cannot be read, each with the reason.
    """

    evaluations: Mapping[Task, Evaluation]
    returned: frozenset[str]
    unreadable: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class KeptScores:
    """The cache file of a run, and the hash of everything that the scores depend on."""

    path: Path
    key: str

    @classmethod
    def of_run(cls, files: RunFiles, hashes: Sequence[str]) -> Self:
        """Return the cache file of a run whose inputs have these hashes."""
        key = hashlib.sha256("\n".join([code_sha256(), *hashes]).encode()).hexdigest()
        return cls(files.manifest.with_name(files.responses.stem + ".scores.npz"), key)

    def load(self) -> RunScores | None:
        """Read the scores; None if there are none with this key."""
        import numpy as np

        if not self.path.exists():
            return None
        try:
            with self.path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
                head = json.loads(arrays["head"].tobytes())
                if head["key"] != self.key:
                    return None
                return RunScores(
                    {
                        Task(task): _evaluation(Task(task), about, arrays[task])
                        for task, about in head["tasks"].items()
                    },
                    frozenset(head["returned"]),
                    tuple(head["unreadable"]),
                )
        except (OSError, ValueError, KeyError, TypeError, EOFError, BadZipFile, error):
            # The scores can be computed again.
            return None

    def save(self, scores: RunScores) -> None:
        """Write the scores; do nothing if the folder is read-only.

        Raises:
            ResultsError: the file cannot be written.
        """
        import numpy as np

        if not os.access(self.path.parent, os.W_OK):
            return
        arrays: dict[str, Any] = {}
        tasks = {}
        for task, evaluation in scores.evaluations.items():
            table = CompactScores()
            for score in evaluation.scores:
                table.append(score)
            arrays[task] = np.array(table.numbers)
            tasks[task] = {
                "gold": evaluation.gold,
                "statuses": evaluation.statuses,
                "metrics": table.metrics,
                "counts": table.counts,
                "ids": table.ids,
                "of": table.statuses,
            }
        head = {
            "key": self.key,
            "tasks": tasks,
            "returned": sorted(scores.returned),
            "unreadable": scores.unreadable,
        }
        arrays["head"] = np.frombuffer(json.dumps(head).encode(), dtype=np.uint8)
        with writing(self.path), replacing(self.path) as file:
            np.savez_compressed(file, allow_pickle=False, **arrays)


@cache
def code_sha256() -> str:
    """Return a hash of our code, the label table and the libraries that scores depend on."""
    root = Path(pii_bench.__file__).parent
    digest = hashlib.sha256()
    for path in [*sorted(root.rglob("*.py")), root / "labels.csv"]:
        digest.update(path.read_bytes())
    for library in ("rapidfuzz", "scipy"):
        digest.update(version(library).encode())
    return digest.hexdigest()


def _evaluation(task: Task, about: Mapping[str, Any], numbers: Iterable[float]) -> Evaluation:
    table = CompactScores(
        about["metrics"],
        about["counts"],
        about["ids"],
        [Status(status) for status in about["of"]],
        array("d", numbers),
    )
    return Evaluation(
        task=task,
        gold=int(about["gold"]),
        scores=tuple(table),
        statuses={Status(status): count for status, count in about["statuses"].items()},
    )
