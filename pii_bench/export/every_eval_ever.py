"""Stored runs as Every Eval Ever 0.3.0 has them: a JSON file per run, and its samples beside it.

What nobody told is left out, or `unknown` where the schema wants a value: no time of the run, no
developer that the results do not name. Texts of datasets that do not ship stay here, and so do
the answers of a replay: their lines have ids and scores alone. A hash would not do for them: who
knows all of a text but a masked number can try the numbers.
"""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections import defaultdict
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import pii_bench
from pii_bench.datasets.catalog import load_dataset
from pii_bench.datasets.checksums import sha256_of
from pii_bench.evaluation import evaluate
from pii_bench.export.every_eval_ever_metrics import METRICS
from pii_bench.export.every_eval_ever_samples import ScoredTask, sample_lines
from pii_bench.export.model_identity import PROJECT, UNKNOWN, identify
from pii_bench.files import write_whole
from pii_bench.leaderboard.collect import FOLDERS, collect, read_run
from pii_bench.leaderboard.rows import Source
from pii_bench.predictions.prediction import compose
from pii_bench.prompting.strategies import DETECTION, load_prompt
from pii_bench.runner.records import Failure
from pii_bench.runner.store import RunFiles, read_lines
from pii_bench.tasks import Task

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from pii_bench.datasets.catalog import Dataset
    from pii_bench.export.model_identity import ModelIdentity
    from pii_bench.leaderboard.collect import StoredRun
    from pii_bench.leaderboard.rows import Row
    from pii_bench.models.base import Completion
    from pii_bench.runner.manifest import Manifest

SCHEMA_VERSION: Final = "0.3.0"

Relationship: TypeAlias = Literal["first_party", "third_party", "collaborative", "other"]
"""What the evaluator is to the model."""


@dataclass(frozen=True, slots=True)
class Evaluator:
    """Who ran the runs of a results folder; the project ran those of reference.

    Attributes:
        organization: as it wants to be named.
        relationship: to the models; `other` says nothing of it.
    """

    organization: str = UNKNOWN
    relationship: Relationship = "other"


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written, and the runs that were not, each with the reason.

    Attributes:
        files: the JSON file of each run.
        incomplete: those that lack the scores of some samples, and say so.
    """

    files: tuple[Path, ...]
    incomplete: tuple[Path, ...]
    left_out: tuple[str, ...]


def export_runs(results: Path, out: Path, evaluator: Evaluator, *, created: int) -> Exported:
    """Write every run that has a scored sample, under the names of the shared repository.

    The files of a run keep their names from one export to the next, so that a later one takes
    the place of an earlier.

    Args:
        results: folder of the runs.
        out: folder in which `data/pii_bench/<developer>/<model>/` is made.
        evaluator: who made the runs.
        created: seconds since 1970 at which the files are made; the schema wants them.

    Raises:
        InputFileError: a manifest or a line of responses is broken.
        ResultsError: a file cannot be written.
    """
    collection = collect(results)
    rows: dict[tuple[Source, str, str, str], list[Row]] = defaultdict(list)
    for row in collection.rows:
        rows[row.source, row.model, row.strategy, row.dataset].append(row)
    datasets: dict[str, Dataset] = {}
    left_out = list(collection.left_out)
    files: list[Path] = []
    incomplete: list[Path] = []
    for source, root, path in _stored(results):
        run = read_run(path)
        system, source_of = run.manifest.system, run.manifest.dataset.source
        own = rows.get((source, system.model, system.prompt, run.manifest.dataset.name), [])
        scored = [row for row in own if row.scored]
        if not scored:
            if own:
                left_out.append(f"{system.model}, {system.prompt} on {source_of}: no sample scored")
            continue
        if source_of not in datasets:
            datasets[source_of] = load_dataset(source_of)
        tasks = [_scored(row, run, path, root, datasets[source_of]) for row in scored]
        files.append(_write(out, run.manifest, tasks, _reported(source, evaluator, run), created))
        if not all(row.complete for row in scored):
            incomplete.append(files[-1])
    return Exported(tuple(files), tuple(incomplete), tuple(left_out))


def _stored(results: Path) -> Iterator[tuple[Source, Path, Path]]:
    for folder, source in FOLDERS.items():
        root = results / folder
        for path in sorted(root.glob("*/*/*.run.json")):
            yield source, root, path


def _scored(row: Row, run: StoredRun, path: Path, root: Path, dataset: Dataset) -> ScoredTask:
    predictions = run.predictions
    completions = _completions(path)
    if row.task is Task.MASKING:
        # The row is there, so the answers of detection are: where the runner puts them.
        system = run.manifest.system
        prompt = load_prompt(DETECTION, output=system.output).name
        beside = RunFiles.at(root, system.model, prompt, run.manifest.dataset.name).manifest
        detected, before = read_run(beside).predictions, _completions(beside)
        predictions = {
            name: compose(detected[name], prediction)
            for name, prediction in predictions.items()
            if name in detected
        }
        completions = {
            name: before[name] + after for name, after in completions.items() if name in before
        }
    evaluation = evaluate(row.task, dataset.samples, predictions)
    return ScoredTask(row, dataset, evaluation, predictions, completions)


def _completions(manifest: Path) -> dict[str, tuple[Completion, ...]]:
    lines = RunFiles.of_manifest(manifest).responses
    records = read_lines(lines) if lines.exists() else ()
    return {
        record.id: record.completions
        for _, record in records
        if not isinstance(record.response, Failure)
    }


def _reported(source: Source, evaluator: Evaluator, run: StoredRun) -> dict[str, Any]:
    if source is Source.REFERENCE:
        ours = identify(run.manifest.system).developer == PROJECT
        evaluator = Evaluator(f"{PROJECT} authors", "first_party" if ours else "third_party")
    return {
        "source_name": PROJECT,
        "source_type": "evaluation_run",
        "source_organization_name": evaluator.organization,
        "evaluator_relationship": evaluator.relationship,
        "additional_details": {"results": str(source)},
    }


def _write(
    out: Path,
    manifest: Manifest,
    tasks: list[ScoredTask],
    reported: Mapping[str, Any],
    created: int,
) -> Path:
    model = identify(manifest.system)
    digest = _digest(manifest, reported)
    evaluation_id = f"{PROJECT}/{model.id}/{digest.hex()[:16]}"
    # A name that is the same the next time, in the form of a random one, which is asked for.
    name = str(uuid.UUID(bytes=digest[16:], version=4))
    folder = f"data/{PROJECT}/{'/'.join(_folders(model))}"
    samples, run = out / folder / f"{name}_samples.jsonl", out / folder / f"{name}.json"
    shared = {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": evaluation_id,
        "model_id": model.id,
    }
    lines = [line for task in tasks for line in sample_lines(task, shared, evaluation_id)]
    write_whole(samples, "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines))
    document = {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": evaluation_id,
        "retrieved_timestamp": str(created),
        "source_metadata": reported,
        "eval_library": {
            "name": PROJECT,
            "version": pii_bench.__version__,
            "additional_details": {"version_of_the_run": manifest.version},
        },
        "model_info": model.document(),
        "evaluation_results": [
            _result(task, metric, manifest, evaluation_id)
            for task in tasks
            for metric in task.row.metrics
        ],
        "detailed_evaluation_results": {
            "format": "jsonl",
            "file_path": f"{folder}/{samples.name}",
            "hash_algorithm": "sha256",
            "checksum": sha256_of(samples),
            "total_rows": len(lines),
        },
    }
    write_whole(run, json.dumps(document, indent=2, ensure_ascii=False) + "\n")
    return run


def _digest(manifest: Manifest, reported: Mapping[str, Any]) -> bytes:
    """What tells a run from any other, and stays when it is scored again."""
    identity = [asdict(manifest.system), asdict(manifest.dataset), reported["additional_details"]]
    canonical = json.dumps(identity, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(canonical.encode()).digest()


def _folders(model: ModelIdentity) -> tuple[str, str]:
    developer, _, name = model.id.partition("/")
    portable = (re.sub(r"[^A-Za-z0-9._+-]", "_", part).rstrip(".") for part in (developer, name))
    first, second = portable
    return first or UNKNOWN, second or UNKNOWN


def _result(
    task: ScoredTask, metric: str, manifest: Manifest, evaluation_id: str
) -> dict[str, Any]:
    row, system = task.row, manifest.system
    arguments = _arguments(system.settings)
    told = {
        "strategy": system.prompt,
        "prompt_sha256": system.prompt_sha256,
        **{name: value for name, value in system.settings.items() if name not in arguments},
    }
    return {
        "evaluation_result_id": task.result_id(evaluation_id, metric),
        "evaluation_name": task.evaluation_name,
        "source_data": {
            "dataset_name": row.dataset,
            "source_type": "other",
            "additional_details": {
                "sha256": task.dataset.sha256,
                "samples": str(len(task.dataset.samples)),
            },
        },
        "metric_config": METRICS[metric].document(),
        "score_details": {"score": row.metrics[metric], "details": _details(row)},
        "generation_config": {
            "generation_args": arguments,
            "additional_details": {name: str(value) for name, value in told.items() if value != ""},
        },
    }


def _arguments(settings: Mapping[str, Any]) -> dict[str, Any]:
    """What has a place of its own, in the type that it has there: a plug-in's may be any."""
    arguments: dict[str, Any] = {}
    match settings:
        case {"temperature": float() | int() | None as temperature}:
            arguments["temperature"] = temperature
    match settings:
        case {"max_tokens": int() as most} if most > 0:
            arguments["max_tokens"] = most
    return arguments


def _details(row: Row) -> dict[str, str]:
    rates = {f"rate_{status}": f"{rate:.6g}" for status, rate in (row.rates or {}).items() if rate}
    return {
        "task": str(row.task),
        "samples_scored": str(row.scored),
        "samples": str(row.gold),
        "complete": json.dumps(row.complete),
        "told_gold": json.dumps(row.oracle),
        "unmasked_text_to": row.unmasked_text_to,
        **rates,
        "signature": row.signature,
    }
