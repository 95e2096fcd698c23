"""Export of stored runs to Every Eval Ever 0.3.0: a JSON file per run, and one with its samples.

Unknown values are left out, or `unknown` where the schema requires a value: the time of the run,
a developer that the results do not name. The texts of datasets that do not ship are not exported,
nor are the answers of a replay: their lines have only ids and scores. They have no hash either:
a person who knows all of a text but a masked number could try all numbers.

The id of a model is `developer/name`. The part before the slash in our results is a provider, or
only a protocol if the user runs the server: that is not a developer.
"""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal

import pii_bench
from pii_bench.errors import InputFileError
from pii_bench.files import encode, sha256_of_value, write_whole, writing
from pii_bench.integrations.every_eval_ever_figures import METRICS, ScoredTask, sample_lines
from pii_bench.models.catalog import LOCAL, PROVIDERS, REPLAY, find_card
from pii_bench.ranking.rows import Source, with_intervals
from pii_bench.ranking.scores import LEVEL, RESAMPLES
from pii_bench.ranking.stored import read_runs, rows_of
from pii_bench.runs.records import Failure
from pii_bench.runs.store import read_responses
from pii_bench.systems.base import GOLD, THIS_MACHINE
from pii_bench.tasks import Task

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from pii_bench.models.base import Completion
    from pii_bench.ranking.rows import Row
    from pii_bench.ranking.stored import Run
    from pii_bench.runs.records import Manifest
    from pii_bench.systems.base import SystemCard


SCHEMA_VERSION: Final = "0.3.0"

# Number of samples from which the size of all lines is estimated.
_SIZE_SAMPLES: Final = 20

PROJECT: Final = "pii_bench"
UNKNOWN: Final = "unknown"

_TAGGERS: Final = frozenset({"bilstm-crf", "bilstm-crf-words", "encoder"})


@dataclass(frozen=True, slots=True)
class Evaluator:
    """The evaluator of the runs in a results folder, except the project's reference runs.

    `relationship` is that to the model's developer; `other` if unspecified.
    """

    organization: str = UNKNOWN
    relationship: Literal["first_party", "third_party", "collaborative", "other"] = "other"


@dataclass(frozen=True, slots=True)
class Exported:
    """The exported runs.

    Attributes:
        files: the JSON file of each run.
        incomplete: those that lack the scores of some samples.
        left_out: the runs that were not exported, each with the reason.
    """

    files: tuple[Path, ...]
    incomplete: tuple[Path, ...]
    left_out: tuple[str, ...]


def export_runs(
    results: Path,
    out: Path,
    evaluator: Evaluator,
    *,
    created: int,
    compress: bool = False,
    announce: Callable[[int], None] | None = None,
) -> Exported:
    """Export every run that has a scored sample, with the paths of the shared repository.

    A run's files have the same names in every export, so that a later export replaces an
    earlier one.

    Args:
        results: folder of the runs.
        out: folder for `data/pii_bench/<developer>/<model>/`.
        evaluator: of the runs.
        created: Unix time of the export.
        compress: write the samples with gzip, as `..._samples.jsonl.gz`; the run's JSON file has
            name and hash of the uncompressed file.
        announce: called with the approximate bytes of all samples before anything is written.

    Raises:
        ResultsError: a file cannot be written.
    """
    stored = read_runs(results)
    left_out = list(stored.left_out)
    found = [(run, row) for run in stored.runs for row in rows_of(run)]
    rows_by_run: dict[Run, list[Row]] = {run: [] for run in stored.runs}
    # In one call, because the intervals share their bootstrap samples.
    for (run, _), row in zip(found, with_intervals(row for _, row in found), strict=True):
        rows_by_run[run].append(row)
    prepared: list[tuple[Run, list[ScoredTask]]] = []
    for run, rows in rows_by_run.items():
        system = run.manifest.system
        name = f"{system.model}, {system.prompt} on {run.dataset.source}"
        scored = [row for row in rows if row.scored]
        if not scored:
            left_out.append(f"{name}: no sample is scored")
            continue
        try:
            prepared.append((run, [_scored_task(row, run) for row in scored]))
        except InputFileError as error:
            left_out.append(f"{name}: {error}")
    if announce is not None:
        announce(sum(_estimated_bytes(task) for _, tasks in prepared for task in tasks))
    files: list[Path] = []
    incomplete: list[Path] = []
    for run, tasks in prepared:
        path = _write(out, run, tasks, evaluator, created, compress=compress)
        files.append(path)
        if not all(task.row.complete for task in tasks):
            incomplete.append(path)
    return Exported(tuple(files), tuple(incomplete), tuple(left_out))


def _estimated_bytes(task: ScoredTask) -> int:
    """Estimate the size of a task's lines from those of a few samples."""
    scores = list(task.evaluation.scores)
    some = scores[:: len(scores) // _SIZE_SAMPLES + 1]
    part = replace(task, evaluation=replace(task.evaluation, scores=tuple(some)))
    head = {"schema_version": SCHEMA_VERSION, "evaluation_id": "", "model_id": ""}
    size = sum(len(encode(_line(line))) for line in sample_lines(part, head, ""))
    return size * len(scores) // len(some)


def _line(record: Mapping[str, Any]) -> str:
    return f"{json.dumps(record, ensure_ascii=False)}\n"


def _scored_task(row: Row, run: Run) -> ScoredTask:
    completions = _completions(run)
    if row.task is Task.MASKING and run.detection is not None:
        detections = _completions(run.detection)
        completions = {
            name: detections[name] + related
            for name, related in completions.items()
            if name in detections
        }
    evaluation = run.scores.evaluations[row.task]
    return ScoredTask(row, run.dataset, evaluation, run.by_task[row.task], completions)


def _completions(run: Run) -> dict[str, tuple[Completion, ...]]:
    if run.files is None:
        return {}
    return {
        record.id: record.completions
        for record in read_responses(run.files.responses, unreadable=[])
        if not isinstance(record.response, Failure)
    }


def _source_metadata(run: Run, evaluator: Evaluator) -> dict[str, Any]:
    if run.source is Source.REFERENCE:
        ours = identify(run.manifest.system).get("developer") == PROJECT
        evaluator = Evaluator(f"{PROJECT} authors", "first_party" if ours else "third_party")
    return {
        "source_name": PROJECT,
        "source_type": "evaluation_run",
        "source_organization_name": evaluator.organization,
        "evaluator_relationship": evaluator.relationship,
        "additional_details": {"results": str(run.source)},
    }


def _write(
    out: Path,
    run: Run,
    tasks: list[ScoredTask],
    evaluator: Evaluator,
    created: int,
    *,
    compress: bool,
) -> Path:
    manifest = run.manifest
    model = identify(manifest.system)
    digest = _digest(manifest, run.source)
    evaluation_id = f"{PROJECT}/{model['id']}/{digest[:16]}"
    # The format of a random UUID, which the repository requires, but reproducible.
    stem = str(uuid.UUID(hex=digest[32:], version=4))
    developer, _, name = model["id"].partition("/")
    folder = f"data/{PROJECT}/{_portable(developer)}/{_portable(name)}"
    samples, path = out / folder / f"{stem}_samples.jsonl", out / folder / f"{stem}.json"
    head = {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": evaluation_id,
        "model_id": model["id"],
    }
    lines = [line for task in tasks for line in sample_lines(task, head, evaluation_id)]
    text = "".join(map(_line, lines))
    compressed = samples.with_name(f"{samples.name}.gz")
    new, old = (compressed, samples) if compress else (samples, compressed)
    write_whole(new, text, compress=compress)
    with writing(old):
        old.unlink(missing_ok=True)
    document = {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": evaluation_id,
        "retrieved_timestamp": str(created),
        "source_metadata": _source_metadata(run, evaluator),
        "eval_library": {
            "name": PROJECT,
            "version": pii_bench.__version__,
            "additional_details": {"version_of_the_run": manifest.version},
        },
        "model_info": model,
        "evaluation_results": [
            _result(task, metric, manifest, evaluation_id)
            for task in tasks
            for metric in task.row.metrics
        ],
        "detailed_evaluation_results": {
            "format": "jsonl",
            "file_path": f"{folder}/{samples.name}",
            "hash_algorithm": "sha256",
            "checksum": hashlib.sha256(encode(text)).hexdigest(),
            "total_rows": len(lines),
        },
    }
    write_whole(path, json.dumps(document, indent=2, ensure_ascii=False) + "\n")
    return path


def _digest(manifest: Manifest, source: Source) -> str:
    """Return a hash that identifies a run, and stays the same when it is scored again."""
    system = manifest.system
    if source is Source.SUBMITTED:
        # They have the hash of the predictions, which `score --force` replaces.
        system = replace(system, settings={})
    return sha256_of_value([asdict(system), asdict(manifest.dataset), source])


def _portable(name: str) -> str:
    """Return a folder name that is valid on every file system."""
    return re.sub(r"[^A-Za-z0-9._+-]", "_", name).rstrip(".") or UNKNOWN


def _result(
    task: ScoredTask, metric: str, manifest: Manifest, evaluation_id: str
) -> dict[str, Any]:
    row, system = task.row, manifest.system
    arguments = _generation_args(system.settings)
    details = {
        "strategy": system.prompt,
        "prompt_sha256": system.prompt_sha256,
        **{name: value for name, value in system.settings.items() if name not in arguments},
    }
    score: dict[str, Any] = {"score": row.metrics[metric], "details": _details(row)}
    if metric == row.headline_name and row.interval is not None:
        score["uncertainty"] = {
            "confidence_interval": {
                "lower": row.interval.low,
                "upper": row.interval.high,
                "confidence_level": LEVEL,
                "method": "percentile bootstrap, clustered on the description",
            },
            "num_samples": row.scored,
            "num_bootstrap_samples": RESAMPLES,
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
        "metric_config": METRICS[metric].document(metric),
        "score_details": score,
        "generation_config": {
            "generation_args": arguments,
            "additional_details": {
                name: str(value) for name, value in details.items() if value != ""
            },
        },
    }


def _generation_args(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that have a field in the schema; those of plug-ins may not be valid."""
    arguments: dict[str, Any] = {}
    if isinstance(settings.get("temperature", ""), float | int | None):
        arguments["temperature"] = settings["temperature"]
    max_tokens = settings.get("max_tokens")
    if isinstance(max_tokens, int) and max_tokens > 0:
        arguments["max_tokens"] = max_tokens
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


def identify(card: SystemCard) -> dict[str, Any]:
    """Return the object `model_info` for the model of a system's card.

    The availability of weights is `open_weights` or unknown: results do not show that they are
    closed.
    """
    from pii_bench.models.local import WEIGHTS

    provider, slash, name = card.model.partition("/")
    model_id, availability = card.model, UNKNOWN
    deployment = "self_deployed" if card.unmasked_text_to == THIS_MACHINE else UNKNOWN
    known: dict[str, Any] = {}
    if not slash:
        developer = PROJECT if card.model in _TAGGERS | {GOLD} else UNKNOWN
        model_id = f"{developer}/{card.model}"
        availability = "open_weights" if card.model in _TAGGERS else UNKNOWN
    elif provider == REPLAY:
        # The model that wrote the answers is unknown.
        model_id, deployment = f"{UNKNOWN}/{name}", UNKNOWN
    elif provider == LOCAL:
        model_id = f"{UNKNOWN}/{name}"
        # A user's file may have the same name as the packaged weights.
        weights = WEIGHTS.get(name)
        if weights and card.settings.get("weights") == f"sha256:{weights.sha256}":
            availability = "open_weights"
        engine, _, version = str(card.settings.get("runtime", "")).partition(" ")
        if version:
            known["inference_engine"] = {"name": engine, "version": version}
    elif provider in PROVIDERS:
        if card.settings.get("endpoint") == PROVIDERS[provider].base_url:
            deployment, known["inference_platform"] = "externally_managed", provider
        else:
            # On another server, `@host` follows the model's name.
            name = name.rpartition("@")[0] or name
            listed = find_card(provider, name)
            if listed is not None and listed.needs_base_url:
                availability = "open_weights"
            # Such servers use the names of Hugging Face, which begin with the developer.
            model_id = name if "/" in name else f"{UNKNOWN}/{name}"
    developer = model_id.partition("/")[0]
    return {
        "name": card.model,
        "id": model_id,
        **({} if developer == UNKNOWN else {"developer": developer}),
        **known,
        "additional_details": {
            "deployment_type": deployment,
            "model_availability": availability,
        },
    }
