"""From stored responses to rows, without any model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pii_bench.datasets.catalog import load_dataset
from pii_bench.errors import PiiBenchError
from pii_bench.evaluation import evaluate
from pii_bench.leaderboard.rows import Row, Source, row_of
from pii_bench.models.base import SKIPPED_BUDGET
from pii_bench.outcome import Status
from pii_bench.predictions.prediction import Prediction, compose, read_response
from pii_bench.runner.manifest import Manifest, read_manifest
from pii_bench.runner.records import Failure
from pii_bench.runner.store import RunFiles, read_lines
from pii_bench.signature import Signature
from pii_bench.tasks import Task

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from pii_bench.datasets.catalog import Dataset
    from pii_bench.evaluation import Evaluation

FOLDERS: Mapping[str, Source] = {"runs": Source.RUN, "reference": Source.REFERENCE}

_VOTED = frozenset({"votes", "temperature"})


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


def collect(results: Path, loaded: Iterable[Dataset] = ()) -> Collection:
    """Score every run under `<results>/runs` and `<results>/reference`.

    Args:
        results: folder of the runs.
        loaded: datasets that need not be read again.

    Raises:
        InputFileError: a manifest or a line of responses is broken.
    """
    rows: list[Row] = []
    left_out: list[str] = []
    datasets: dict[str, Dataset | None] = {dataset.source: dataset for dataset in loaded}
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
    lines = RunFiles.of_manifest(path).responses
    system = manifest.system
    predictions: dict[str, Prediction] = {}
    returned: set[str] = set()
    for _, record in read_lines(lines) if lines.exists() else ():
        returned.update(each.model for each in record.completions if each.model)
        if not isinstance(record.response, Failure):
            predictions[record.id] = read_response(system.task, record.response, system.output)
        elif record.id not in predictions or not predictions[record.id].status.scored:
            predictions[record.id] = Prediction(_status_of(record.response))
    return StoredRun(manifest, predictions, frozenset(returned))


def rows_of(
    run: StoredRun, detection: StoredRun | None, dataset: Dataset, source: Source
) -> list[Row]:
    """The rows of a run: its own task, and masking where detection answers stand beside it.

    Args:
        run: a detection or query-related run.
        detection: the same model's detection run, with the same settings and output, on the
            same dataset. Settings of a vote are its own.
        dataset: gold.
        source: where the run lies.
    """
    system = run.manifest.system
    own = evaluate(system.task, dataset.samples, run.predictions)
    rows = [_row([run], own, source)]
    if system.task is Task.QUERY_RELATED and detection is not None:
        both = {
            sample_id: compose(detection.predictions[sample_id], prediction)
            for sample_id, prediction in run.predictions.items()
            if sample_id in detection.predictions
        }
        masking = evaluate(Task.MASKING, dataset.samples, both)
        rows.append(_row([detection, run], masking, source))
    # A dataset without queries has nothing for the tasks that need one.
    return [row for row in rows if row.gold]


def _row(runs: list[StoredRun], evaluation: Evaluation, source: Source) -> Row:
    system = runs[-1].manifest.system
    recipients = dict.fromkeys(run.manifest.system.unmasked_text_to for run in runs)
    return row_of(
        evaluation,
        _signature(runs, evaluation.task),
        source=source,
        oracle=system.oracle,
        names_subjects=system.names_subjects,
        unmasked_text_to=", ".join(recipients),
    )


def _signature(runs: list[StoredRun], task: Task) -> Signature:
    *before, last = (run.manifest for run in runs)
    # Where masking joins runs whose settings differ, those of the first are said too.
    others = {
        f"{manifest.system.prompt}.{key}": value
        for manifest in before
        for key, value in manifest.system.settings.items()
        if last.system.settings.get(key) != value
    }
    return Signature(
        dataset=last.dataset.name,
        dataset_sha256=last.dataset.sha256,
        task=task,
        strategy=last.system.prompt,
        prompts={run.manifest.system.prompt: run.manifest.system.prompt_sha256 for run in runs},
        model=last.system.model,
        returned=sorted(frozenset[str]().union(*(run.returned for run in runs))),
        settings={**last.system.settings, **others},
    )


def _detection_beside(run: StoredRun, runs: Iterable[StoredRun]) -> StoredRun | None:
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
