"""Predictions that were made elsewhere and are kept under a name of their own.

`<results>/submitted/<name>/<dataset>.jsonl` holds them in the format of a predictions file, and
`<dataset>.json` next to it says whose they are and on what. They enter every table like a run.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pii_bench
from pii_bench.errors import InputFileError, PiiBenchError
from pii_bench.files import RecordError, get, read_object, sha256_of, write_json, write_whole
from pii_bench.models.catalog import MODELS
from pii_bench.runs.predictions import Prediction, predicted_tasks, read_predictions, to_text
from pii_bench.runs.records import DatasetRef, Manifest
from pii_bench.systems.base import GOLD, SystemCard
from pii_bench.systems.detectors import DETECTORS
from pii_bench.tasks import Task

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from pii_bench.datasets.catalog import Dataset

FOLDER: Final = "submitted"
FORMAT: Final = "pii-bench-submission-1"
"""What the file next to the predictions says of itself."""

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._@+-]+")


@dataclass(frozen=True, slots=True)
class Submission:
    """What predictions are, as the file next to them says.

    Attributes:
        name: of their maker.
        dataset: what they are about.
        version: of the suite that kept them.
    """

    name: str
    dataset: DatasetRef
    version: str = pii_bench.__version__
    format: str = FORMAT


def check_name(name: str) -> None:
    """Refuse a name that a submission cannot have.

    Raises:
        PiiBenchError: it is no name for a folder, or that of a system of the suite.
    """
    if not _NAME.fullmatch(name):
        allowed = "up to 80 of A-Z, a-z, 0-9, '.', '_' and '-', a letter or digit first"
        raise PiiBenchError(f"a submission came with the name {name!r}; allowed: {allowed}")
    if name in {GOLD, *DETECTORS, *MODELS}:
        raise PiiBenchError(f"{name!r} is a system of the suite: give predictions another name")


def keep_submission(
    results: Path,
    name: str,
    dataset: Dataset,
    predictions: Mapping[str, Prediction],
    *,
    force: bool = False,
) -> Path:
    """Keep predictions under a name.

    Returns:
        The file of the predictions.

    Raises:
        PiiBenchError: see `check_name`; or others are kept under it already, and `force` is not
            set.
        ResultsError: they cannot be written.
    """
    check_name(name)
    path = results / FOLDER / name / f"{_UNSAFE.sub('--', dataset.name)}.jsonl"
    text = to_text(predictions)
    if path.exists() and path.read_text(encoding="utf-8") != text and not force:
        raise PiiBenchError(f"{path}: other predictions are kept there; --force replaces them")
    write_whole(path, text)
    write_json(path.with_suffix(".json"), Submission(name, DatasetRef.of(dataset)))
    return path


def submissions(results: Path) -> Iterator[Path]:
    """The files that say what each kept file of predictions is."""
    return iter(sorted((results / FOLDER).glob("*/*.json")))


def read_submission(path: Path) -> Submission:
    """Read what predictions are.

    Raises:
        InputFileError: it is not of its format, or lies in a folder of another name.
    """
    submission = read_object(path, "submission", _submission)
    if submission.name != path.parent.name:
        raise InputFileError(path, f"'name' must be that of its folder, {path.parent.name!r}")
    return submission


def answers_of(
    path: Path, submission: Submission, dataset: Dataset
) -> list[tuple[Manifest, Mapping[str, Prediction]]]:
    """What a submission answers, as runs would have it: detection first.

    Args:
        path: the file that says what it is.
        submission: what that says.
        dataset: gold, as it says.

    Raises:
        InputFileError: the predictions cannot be read or do not fit the dataset.
    """
    file = path.with_suffix(".jsonl")
    predictions = read_predictions(file, [sample.id for sample in dataset.samples])
    settings = {"predictions": sha256_of(file)[:12]}
    tasks = [task for task in predicted_tasks(predictions) if task is not Task.MASKING]
    return [
        (
            Manifest(
                SystemCard(
                    model=submission.name,
                    prompt="",
                    prompt_sha256="",
                    task=task,
                    oracle=False,
                    settings=settings,
                ),
                submission.dataset,
                submission.version,
            ),
            {
                sample_id: Prediction(
                    each.status,
                    subjects=each.subjects if task is Task.DETECTION else None,
                    related=each.related if task is Task.QUERY_RELATED else None,
                    rewritten=each.rewritten if task is Task.REWRITE else None,
                )
                for sample_id, each in predictions.items()
            },
        )
        for task in tasks
    ]


def _submission(record: dict[str, Any]) -> Submission:
    if get(record, "format", str) != FORMAT:
        raise RecordError(f"'format' must be {FORMAT!r}")
    dataset = get(record, "dataset", dict)
    return Submission(
        name=get(record, "name", str),
        dataset=DatasetRef(
            name=get(dataset, "name", str, "dataset"),
            source=get(dataset, "source", str, "dataset"),
            sha256=get(dataset, "sha256", str, "dataset"),
            samples=get(dataset, "samples", int, "dataset"),
        ),
        version=get(record, "version", str),
    )
