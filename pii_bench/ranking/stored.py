"""Stored responses read back, each run with its dataset and the detection beside it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pii_bench.datasets.catalog import load_dataset
from pii_bench.errors import InputFileError, PiiBenchError
from pii_bench.models.base import SKIPPED_BUDGET
from pii_bench.prompting.outcome import Status
from pii_bench.ranking.source import Source
from pii_bench.ranking.submitted import answers_of, read_submission, submissions
from pii_bench.runs.manifest import Manifest, read_manifest
from pii_bench.runs.predictions.prediction import Prediction, compose, read_response
from pii_bench.runs.records import Failure
from pii_bench.runs.store import RunFiles, read_lines
from pii_bench.tasks import Task

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from pii_bench.datasets.catalog import Dataset

FOLDERS: Final[Mapping[str, Source]] = {"runs": Source.RUN, "reference": Source.REFERENCE}

_VOTED: Final = frozenset({"votes", "temperature"})


@dataclass(frozen=True, slots=True)
class StoredRun:
    """One run read back.

    Attributes:
        predictions: sample id to what its response says; samples without one are absent.
        returned: models that the provider said it used.
        unreadable: lines that cannot be read, by file, line and reason; their samples are absent.
    """

    manifest: Manifest
    predictions: Mapping[str, Prediction]
    returned: frozenset[str]
    unreadable: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RunOnDataset:
    """A stored run with what it is scored against.

    Attributes:
        source: where it lies.
        dataset: gold.
        stored: a detection or query-related run.
        detection: of a query-related run, the same model's detection run on the same dataset,
            with the same settings and output (settings of a vote are its own); None where
            there is none.
    """

    source: Source
    dataset: Dataset
    stored: StoredRun
    detection: StoredRun | None

    @property
    def masking(self) -> Mapping[str, Prediction] | None:
        """Sample id to the masking prediction; None without detection."""
        if self.detection is None:
            return None
        found = self.detection.predictions
        return {
            sample_id: compose(found[sample_id], prediction)
            for sample_id, prediction in self.stored.predictions.items()
            if sample_id in found
        }

    @property
    def predictions(self) -> dict[Task, Mapping[str, Prediction]]:
        """By task: its own, and masking with detection beside it; made anew each time."""
        by_task = {self.stored.manifest.system.task: self.stored.predictions}
        if (masking := self.masking) is not None:
            by_task[Task.MASKING] = masking
        return by_task


@dataclass(frozen=True, slots=True)
class StoredRuns:
    """The runs of a results folder, and what cannot be scored, a run or a line, with the reason."""

    runs: tuple[RunOnDataset, ...]
    left_out: tuple[str, ...]


def read_stored(results: Path, loaded: Iterable[Dataset] = ()) -> StoredRuns:
    """Read every run under `<results>/runs` and `<results>/reference`, and what is submitted.

    Args:
        results: folder of the runs.
        loaded: datasets that need not be read again.
    """
    runs: list[RunOnDataset] = []
    left_out: list[str] = []
    datasets: dict[str, Dataset | None] = {dataset.source: dataset for dataset in loaded}
    for folder, source in FOLDERS.items():
        stored: list[StoredRun] = []
        for path in sorted((results / folder).glob("*/*/*.run.json")):
            try:
                stored.append(read_run(path))
            except InputFileError as error:
                left_out.append(str(error))
        for run in stored:
            left_out += run.unreadable
            reference = run.manifest.dataset
            if reference.source not in datasets:
                datasets[reference.source] = _find(reference.source, left_out)
            dataset = datasets[reference.source]
            if dataset is not None and dataset.sha256 != reference.sha256:
                left_out.append(_changed(run))
            elif dataset is not None:
                runs.append(RunOnDataset(source, dataset, run, _detection_beside(run, stored)))
    for path in submissions(results):
        try:
            runs += _submitted(path, datasets, left_out)
        except InputFileError as error:
            left_out.append(str(error))
    return StoredRuns(tuple(runs), tuple(left_out))


def join_runs(runs: Iterable[tuple[Dataset, StoredRun]], source: Source) -> list[RunOnDataset]:
    """Runs with their datasets, each query-related one with the detection beside it.

    Args:
        runs: each with the dataset that it is of.
        source: where they lie.
    """
    found = list(runs)
    return [
        RunOnDataset(source, dataset, run, _detection_beside(run, [each for _, each in found]))
        for dataset, run in found
    ]


def _submitted(
    path: Path, datasets: dict[str, Dataset | None], left_out: list[str]
) -> list[RunOnDataset]:
    """A submission as runs: masking is composed where it answers both tasks."""
    submission = read_submission(path)
    reference = submission.dataset
    if reference.source not in datasets:
        datasets[reference.source] = _find(reference.source, left_out)
    dataset = datasets[reference.source]
    if dataset is None:
        return []
    if dataset.sha256 != reference.sha256:
        what = "its file has changed since; score the predictions again"
        left_out.append(f"{submission.name} on {reference.source}: {what}")
        return []
    parts = [
        StoredRun(manifest, predictions, frozenset())
        for manifest, predictions in answers_of(path, submission, dataset)
    ]
    detection = parts[0] if len(parts) > 1 else None
    return [
        RunOnDataset(Source.SUBMITTED, dataset, part, None if part is detection else detection)
        for part in parts
    ]


def read_run(path: Path) -> StoredRun:
    """Read the run of a manifest.

    Raises:
        InputFileError: the manifest is broken, or the responses cannot be opened.
    """
    manifest = read_manifest(path)
    unreadable: list[str] = []
    system = manifest.system
    predictions: dict[str, Prediction] = {}
    returned: set[str] = set()
    for _, record in read_lines(RunFiles.of_manifest(path).responses, unreadable):
        returned.update(each.model for each in record.completions if each.model)
        if not isinstance(record.response, Failure):
            predictions[record.id] = read_response(system.task, record.response, system.output)
        elif record.id not in predictions or not predictions[record.id].status.scored:
            predictions[record.id] = Prediction(_status_of(record.response))
    return StoredRun(manifest, predictions, frozenset(returned), tuple(unreadable))


def _detection_beside(run: StoredRun, runs: Iterable[StoredRun]) -> StoredRun | None:
    if run.manifest.system.task is not Task.QUERY_RELATED:
        return None
    # A vote draws at a temperature of its own, and detection has no vote.
    own = _VOTED if "votes" in run.manifest.system.settings else frozenset[str]()
    for other in runs:
        task = other.manifest.system.task
        if task is Task.DETECTION and _asked(other, own) == _asked(run, own):
            return other
    return None


def _asked(run: StoredRun, own: frozenset[str]) -> tuple[object, ...]:
    # The settings too: another endpoint or sampling is another model to the reader.
    system, dataset = run.manifest.system, run.manifest.dataset
    settings = {key: value for key, value in system.settings.items() if key not in own}
    return system.model, system.output, settings, dataset.name, dataset.sha256


def _status_of(failure: Failure) -> Status:
    return Status.SKIPPED_BUDGET if failure.kind == SKIPPED_BUDGET else Status.INFRA_ERROR


def _find(source: str, left_out: list[str]) -> Dataset | None:
    try:
        return load_dataset(source)
    except PiiBenchError as error:
        left_out.append(f"runs on {source}: {error}")
        return None


def _changed(run: StoredRun) -> str:
    reference, system = run.manifest.dataset, run.manifest.system
    what = "its file has changed since; run again, only what changed is asked"
    return f"{system.model}, {system.prompt} on {reference.source}: {what}"
