"""Scores that are kept beside the responses of a run, so that nothing is scored twice.

`<dataset>.scores.npz` holds, for each task, a row of numbers per sample. It is used only as long
as its key is today's: the hashes of responses, manifest and dataset, and of the code that reads
and scores them.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from functools import cache
from math import isnan, nan
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self
from zipfile import BadZipFile
from zlib import error

import pii_bench
from pii_bench.files import replacing, writing
from pii_bench.prompting.outcome import Status
from pii_bench.runs.evaluation import Evaluation, SampleScore
from pii_bench.scorer import PRF, Counts, MaskedTextScore
from pii_bench.tasks import Task

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pii_bench.runs.store import RunFiles

_PACKAGES: Final = ("scorer", "prompting", "masking", "datasets", "runs")
_MODULES: Final = ("jsonl", "ranking/stored", "tasks", "taxonomy")


@dataclass(frozen=True, slots=True)
class RunScores:
    """What a run came to.

    Attributes:
        evaluations: by task: its own, and masking where detection is beside it.
        returned: models that the provider said it used.
        unreadable: lines of its responses that cannot be read, each with the reason.
    """

    evaluations: Mapping[Task, Evaluation]
    returned: frozenset[str]
    unreadable: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class KeptScores:
    """The file of a run's scores.

    Attributes:
        path: where it is.
        key: what the scores in it depend on.
    """

    path: Path
    key: str

    @classmethod
    def beside(cls, files: RunFiles, hashes: Sequence[str]) -> Self:
        """The file beside the responses of a run, for contents of these hashes."""
        key = hashlib.sha256("\n".join([code_sha256(), *hashes]).encode()).hexdigest()
        return cls(files.manifest.with_name(files.responses.stem + ".scores.npz"), key)

    def load(self) -> RunScores | None:
        """The scores; None where there are none of this key."""
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
            # What can be computed again is not worth an error.
            return None

    def save(self, scores: RunScores) -> None:
        """Keep scores; nothing happens where the folder cannot be written to.

        Raises:
            ResultsError: the file cannot be written.
        """
        import numpy as np

        if not os.access(self.path.parent, os.W_OK):
            return
        head = {
            "key": self.key,
            "tasks": {task: _about(each) for task, each in scores.evaluations.items()},
            "returned": sorted(scores.returned),
            "unreadable": scores.unreadable,
        }
        arrays: dict[str, Any] = {
            str(task): np.array([_numbers(score) for score in each.scores], dtype=np.float64)
            for task, each in scores.evaluations.items()
        }
        arrays["head"] = np.frombuffer(json.dumps(head).encode(), dtype=np.uint8)
        with writing(self.path), replacing(self.path) as file:
            np.savez_compressed(file, allow_pickle=False, **arrays)


@cache
def code_sha256() -> str:
    """A hash of the modules that read and score responses."""
    root = Path(pii_bench.__file__).parent
    paths = [path for name in _PACKAGES for path in sorted((root / name).rglob("*.py"))]
    paths += [root / f"{name}.py" for name in _MODULES]
    digest = hashlib.sha256()
    for path in paths:
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _about(evaluation: Evaluation) -> dict[str, Any]:
    first = evaluation.scores[0] if evaluation.scores else None
    return {
        "gold": evaluation.gold,
        "statuses": {str(status): count for status, count in evaluation.statuses.items()},
        "repairs": dict(evaluation.repairs),
        "metrics": [*first.metrics] if first else [],
        "counts": [*first.counts] if first else [],
        "ids": [score.id for score in evaluation.scores],
        "of": [str(score.status) for score in evaluation.scores],
    }


def _numbers(score: SampleScore) -> list[float]:
    left = score.masked_text
    masked = (left.protection, left.retention, left.collateral) if left else (None,) * 3
    return [
        *(x for metric in score.metrics.values() for x in (metric.precision, metric.recall)),
        *(metric.f1 for metric in score.metrics.values()),
        *(
            float(number)
            for counts in score.counts.values()
            for number in (counts.matched, counts.predicted, counts.gold)
        ),
        score.predicted,
        score.hallucinated,
        *(nan if x is None else x for x in (*masked, score.weighted_protection)),
    ]


def _evaluation(task: Task, about: Mapping[str, Any], rows: Any) -> Evaluation:
    numbered = zip(about["ids"], about["of"], rows.tolist(), strict=True)
    return Evaluation(
        task=task,
        gold=int(about["gold"]),
        scores=tuple(
            _score(sample_id, Status(status), about["metrics"], about["counts"], numbers)
            for sample_id, status, numbers in numbered
        ),
        statuses={Status(status): count for status, count in about["statuses"].items()},
        repairs=dict(about["repairs"]),
    )


def _score(
    sample_id: str,
    status: Status,
    metrics: Sequence[str],
    counts: Sequence[str],
    numbers: Sequence[float],
) -> SampleScore:
    places = iter(numbers)
    pairs = [(next(places), next(places)) for _ in metrics]
    figures = [PRF(*pair, next(places)) for pair in pairs]
    counted = [Counts(*(int(next(places)) for _ in range(3))) for _ in counts]
    predicted, hallucinated = int(next(places)), int(next(places))
    protection, retention, collateral, weighted = (
        None if isnan(number) else number for number in places
    )
    left = None
    if protection is not None and retention is not None:
        left = MaskedTextScore(protection, retention, collateral)
    return SampleScore(
        id=sample_id,
        status=status,
        metrics=dict(zip(metrics, figures, strict=True)),
        counts=dict(zip(counts, counted, strict=True)),
        predicted=predicted,
        hallucinated=hallucinated,
        masked_text=left,
        weighted_protection=weighted,
    )
