"""From stored responses to rows, without any model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pii_bench.datasets.catalog import load_dataset
from pii_bench.errors import PiiBenchError
from pii_bench.evaluation import evaluate
from pii_bench.leaderboard.rows import Row, Source, row_of
from pii_bench.models.base import Completion
from pii_bench.outcome import Status
from pii_bench.predictions.prediction import Prediction, compose, read_response
from pii_bench.runner.manifest import Manifest, read_manifest
from pii_bench.runner.store import RunFiles, read_lines
from pii_bench.signature import Signature
from pii_bench.tasks import Task

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from pii_bench.datasets.catalog import Dataset
    from pii_bench.evaluation import Evaluation

FOLDERS: Mapping[str, Source] = {"runs": Source.RUN, "reference": Source.REFERENCE}


@dataclass(frozen=True, slots=True)
class StoredRun:
    """One run read back.

    Attributes:
        predictions: sample id to what its response says; samples without one are absent.
        returned: models that the provider said it used.
    """

    manifest: Manifest
    predictions: Mapping[str, Prediction]
    returned: frozenset[str]


@dataclass(frozen=True, slots=True)
class Collection:
    """Rows of ours, and the runs that could not become rows, each with the reason."""

    rows: tuple[Row, ...]
    left_out: tuple[str, ...]


def collect(results: Path) -> Collection:
    """Score every run under `<results>/runs` and `<results>/reference`.

    Raises:
        InputFileError: a manifest or a line of responses is broken.
    """
    rows: list[Row] = []
    left_out: list[str] = []
    datasets: dict[str, Dataset | None] = {}
    for folder, source in FOLDERS.items():
        runs = [read_run(path) for path in sorted((results / folder).glob("*/*/*.run.json"))]
        for run in runs:
            reference = run.manifest.dataset
            if reference.source not in datasets:
                datasets[reference.source] = _find(reference.source, left_out)
            dataset = datasets[reference.source]
            if dataset is not None and dataset.sha256 != reference.sha256:
                left_out.append(_changed(run))
            elif dataset is not None:
                rows += rows_of(run, _detection_beside(run, runs), dataset, source)
    return Collection(tuple(rows), tuple(left_out))


def read_run(path: Path) -> StoredRun:
    """Read the run of a manifest.

    Raises:
        InputFileError: the manifest or a line of responses is broken.
    """
    manifest = read_manifest(path)
    responses = RunFiles.of_manifest(path).responses
    records = [record for _, record in read_lines(responses)] if responses.exists() else []
    completions = {r.id: r.response for r in records if isinstance(r.response, Completion)}
    predictions = {
        record.id: Prediction(Status.INFRA_ERROR)
        for record in records
        if record.id not in completions
    }
    for sample_id, completion in completions.items():
        predictions[sample_id] = read_response(manifest.system.task, completion)
    returned = frozenset(c.model for c in completions.values() if c.model)
    return StoredRun(manifest, predictions, returned)


def rows_of(
    run: StoredRun, detection: StoredRun | None, dataset: Dataset, source: Source
) -> list[Row]:
    """The rows of a run: its own task, and masking where detection answers stand beside it.

    Args:
        run: a detection or query-related run.
        detection: the same model's detection run, with the same settings, on the same dataset.
        dataset: gold.
        source: where the run lies.
    """
    system = run.manifest.system
    own = evaluate(system.task, dataset.samples, run.predictions)
    rows = [_row(run, own, _signature([run], own.task), source)]
    if system.task is Task.QUERY_RELATED and detection is not None:
        both = {
            sample_id: compose(detection.predictions[sample_id], prediction)
            for sample_id, prediction in run.predictions.items()
            if sample_id in detection.predictions
        }
        masking = evaluate(Task.MASKING, dataset.samples, both)
        signature = _signature([detection, run], Task.MASKING)
        rows.append(_row(run, masking, signature, source))
    # A dataset without queries has nothing for the tasks that need one.
    return [row for row in rows if row.gold]


def _row(run: StoredRun, evaluation: Evaluation, signature: Signature, source: Source) -> Row:
    system = run.manifest.system
    return row_of(
        evaluation,
        signature,
        source=source,
        oracle=system.oracle,
        names_subjects=system.names_subjects,
    )


def _signature(runs: list[StoredRun], task: Task) -> Signature:
    last = runs[-1].manifest
    return Signature(
        dataset=last.dataset.name,
        dataset_sha256=last.dataset.sha256,
        task=task,
        strategy=last.system.prompt,
        prompts={run.manifest.system.prompt: run.manifest.system.prompt_sha256 for run in runs},
        model=last.system.model,
        returned=sorted(frozenset[str]().union(*(run.returned for run in runs))),
        settings=last.system.settings,
    )


def _detection_beside(run: StoredRun, runs: Iterable[StoredRun]) -> StoredRun | None:
    for other in runs:
        if other.manifest.system.task is Task.DETECTION and _asked(other) == _asked(run):
            return other
    return None


def _asked(run: StoredRun) -> tuple[object, ...]:
    # The settings too: another endpoint or sampling is another model to the reader.
    system, dataset = run.manifest.system, run.manifest.dataset
    return system.model, system.settings, dataset.name, dataset.sha256


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
