"""Stored runs as Every Eval Ever 0.3.0 has them: a JSON file per run, and its samples next to it.

What is unknown is left out, or `unknown` where the schema wants a value: no time of the run, no
developer that the results do not name. Texts of datasets that do not ship stay here, and so do
the answers of a replay: their lines have ids and scores alone. A hash would not do for them: who
knows all of a text but a masked number can try the numbers.

The id of a model is `developer/name`. What results put before the slash is a provider, and where
a model runs on a server of one's own no more than a protocol: that is no developer.
"""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from dataclasses import asdict, dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import pii_bench
from pii_bench.errors import InputFileError
from pii_bench.files import encode, write_whole, writing
from pii_bench.integrations.every_eval_ever_figures import METRICS, ScoredTask, sample_lines
from pii_bench.models.catalog import LOCAL, PROVIDERS, REPLAY, find_card
from pii_bench.ranking.rows import Source, with_intervals
from pii_bench.ranking.scores import LEVEL, RESAMPLES
from pii_bench.ranking.stored import read_runs, rows_of
from pii_bench.runs.records import Failure
from pii_bench.runs.store import read_lines
from pii_bench.systems.base import GOLD, THIS_MACHINE
from pii_bench.tasks import Task

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pii_bench.models.base import Completion
    from pii_bench.ranking.rows import Row
    from pii_bench.ranking.stored import Run
    from pii_bench.runs.records import Manifest
    from pii_bench.systems.base import SystemCard


SCHEMA_VERSION: Final = "0.3.0"

# Samples from whose lines the size of all is estimated.
_FEW: Final = 20

Relationship: TypeAlias = Literal["first_party", "third_party", "collaborative", "other"]
"""What the evaluator is to the model."""

PROJECT: Final = "pii_bench"
UNKNOWN: Final = "unknown"

_TAGGERS: Final = frozenset({"bilstm-crf", "bilstm-crf-words"})


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


def export_runs(
    results: Path,
    out: Path,
    evaluator: Evaluator,
    *,
    created: int,
    compress: bool = False,
    announce: Callable[[int], None] | None = None,
) -> Exported:
    """Write every run that has a scored sample, under the names of the shared repository.

    The files of a run keep their names from one export to the next, so that a later one takes
    the place of an earlier.

    Args:
        results: folder of the runs.
        out: folder in which `data/pii_bench/<developer>/<model>/` is made.
        evaluator: who made the runs.
        created: seconds since 1970 at which the files are made; the schema wants them.
        compress: write the samples with gzip, as `..._samples.jsonl.gz`; the JSON file of the run
            names and hashes what `gunzip` makes of them, which is the export without it.
        announce: is told about how many bytes the samples have, before anything is written.

    Raises:
        ResultsError: a file cannot be written.
    """
    stored = read_runs(results)
    left_out = list(stored.left_out)
    prepared: list[tuple[Run, list[ScoredTask]]] = []
    for run, rows in zip(stored.runs, _rows(stored.runs), strict=True):
        scored = [row for row in rows if row.scored]
        if not scored:
            left_out.append(f"{_named(run)}: no sample is scored")
            continue
        try:
            prepared.append((run, [_scored(row, run) for row in scored]))
        except InputFileError as error:
            left_out.append(f"{_named(run)}: {error}")
    if announce is not None:
        announce(sum(_estimated_bytes(task) for _, tasks in prepared for task in tasks))
    files: list[Path] = []
    incomplete: list[Path] = []
    for run, tasks in prepared:
        files.append(_write(out, run, tasks, _reported(run, evaluator), created, compress=compress))
        if not all(task.row.complete for task in tasks):
            incomplete.append(files[-1])
    return Exported(tuple(files), tuple(incomplete), tuple(left_out))


def _estimated_bytes(task: ScoredTask) -> int:
    """About the size of the lines of a task, from those of a few samples."""
    scores = task.evaluation.scores
    few = scores[:: len(scores) // _FEW + 1]
    part = replace(task, evaluation=replace(task.evaluation, scores=few))
    head = {"schema_version": SCHEMA_VERSION, "evaluation_id": "", "model_id": ""}
    size = sum(len(encode(_line(line))) for line in sample_lines(part, head, ""))
    return size * len(scores) // max(len(few), 1)


def _line(record: Mapping[str, Any]) -> str:
    return f"{json.dumps(record, ensure_ascii=False)}\n"


def _rows(runs: Sequence[Run]) -> Iterator[list[Row]]:
    rows = [rows_of(run) for run in runs]
    # At once, because the draws of the intervals are shared.
    told = iter(with_intervals(row for each in rows for row in each))
    return (list(islice(told, len(each))) for each in rows)


def _named(run: Run) -> str:
    system = run.manifest.system
    return f"{system.model}, {system.prompt} on {run.dataset.source}"


def _scored(row: Row, run: Run) -> ScoredTask:
    completions = _completions(run)
    if row.task is Task.MASKING and run.detection is not None:
        before, after = _completions(run.detection), completions
        completions = {name: before[name] + after[name] for name in after if name in before}
    evaluation = run.scores.evaluations[row.task]
    return ScoredTask(row, run.dataset, evaluation, run.by_task[row.task], completions)


def _completions(run: Run) -> dict[str, tuple[Completion, ...]]:
    if run.files is None:
        return {}
    return {
        record.id: record.completions
        for _, record in read_lines(run.files.responses, unreadable=[])
        if not isinstance(record.response, Failure)
    }


def _reported(run: Run, evaluator: Evaluator) -> dict[str, Any]:
    if run.source is Source.REFERENCE:
        ours = identify(run.manifest.system).developer == PROJECT
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
    reported: Mapping[str, Any],
    created: int,
    *,
    compress: bool,
) -> Path:
    manifest = run.manifest
    model = identify(manifest.system)
    digest = _digest(manifest, run.source)
    evaluation_id = f"{PROJECT}/{model.id}/{digest.hex()[:16]}"
    # A name that is the same the next time, in the form of a random one, which is asked for.
    name = str(uuid.UUID(bytes=digest[16:], version=4))
    folder = f"data/{PROJECT}/{'/'.join(_folders(model))}"
    samples, whole = out / folder / f"{name}_samples.jsonl", out / folder / f"{name}.json"
    shared = {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": evaluation_id,
        "model_id": model.id,
    }
    lines = [line for task in tasks for line in sample_lines(task, shared, evaluation_id)]
    text = "".join(map(_line, lines))
    packed = samples.with_name(f"{samples.name}.gz")
    written, other = (packed, samples) if compress else (samples, packed)
    write_whole(written, text, compress=compress)
    with writing(other):
        other.unlink(missing_ok=True)
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
            "checksum": hashlib.sha256(encode(text)).hexdigest(),
            "total_rows": len(lines),
        },
    }
    write_whole(whole, json.dumps(document, indent=2, ensure_ascii=False) + "\n")
    return whole


def _digest(manifest: Manifest, source: Source) -> bytes:
    """What tells a run from any other, and stays when it is scored again."""
    identity = [asdict(manifest.system), asdict(manifest.dataset), source]
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
        "score_details": {
            "score": row.metrics[metric],
            "details": _details(row),
            **(_uncertainty(row) if metric == row.headline_name else {}),
        },
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


def _uncertainty(row: Row) -> dict[str, Any]:
    if row.interval is None:
        return {}
    interval = {
        "lower": row.interval.low,
        "upper": row.interval.high,
        "confidence_level": LEVEL,
        "method": "percentile bootstrap, clustered on the description",
    }
    return {
        "uncertainty": {
            "confidence_interval": interval,
            "num_samples": row.scored,
            "num_bootstrap_samples": RESAMPLES,
        }
    }


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


@dataclass(frozen=True, slots=True)
class ModelIdentity:
    """One model.

    Attributes:
        id: `developer/name`; more slashes may follow.
        name: as results have it.
        deployment: `self_deployed`, `externally_managed` or `unknown`.
        availability: `open_weights` or `unknown`: no result tells that weights are closed.
        platform: the provider that was called; None where none was, or it is unknown.
        engine: name and version of the runtime on this machine; None where unknown.
    """

    id: str
    name: str
    deployment: str = UNKNOWN
    availability: str = UNKNOWN
    platform: str | None = None
    engine: tuple[str, str] | None = None

    @property
    def developer(self) -> str:
        """The part of the id before its first slash."""
        return self.id.partition("/")[0]

    def document(self) -> dict[str, Any]:
        """The object `model_info`."""
        document: dict[str, Any] = {"name": self.name, "id": self.id}
        if self.developer != UNKNOWN:
            document["developer"] = self.developer
        if self.platform is not None:
            document["inference_platform"] = self.platform
        if self.engine is not None:
            name, version = self.engine
            document["inference_engine"] = {"name": name, "version": version}
        document["additional_details"] = {
            "deployment_type": self.deployment,
            "model_availability": self.availability,
        }
        return document


def identify(card: SystemCard) -> ModelIdentity:
    """The model that a system's card names."""
    provider, slash, name = card.model.partition("/")
    here = "self_deployed" if card.unmasked_text_to == THIS_MACHINE else UNKNOWN
    if not slash:
        developer = PROJECT if card.model in _TAGGERS | {GOLD} else UNKNOWN
        opened = "open_weights" if card.model in _TAGGERS else UNKNOWN
        return ModelIdentity(f"{developer}/{card.model}", card.model, here, opened)
    if provider == REPLAY:
        # Whose answers the file holds, and where they were made, is unknown.
        return ModelIdentity(f"{UNKNOWN}/{name}", card.model)
    if provider == LOCAL:
        return _local(card, name, here)
    if provider not in PROVIDERS:
        return ModelIdentity(card.model, card.model, here)
    if card.settings.get("endpoint") == PROVIDERS[provider].base_url:
        return ModelIdentity(card.model, card.model, "externally_managed", platform=provider)
    # `@host` is behind the names of models on other servers.
    return _elsewhere(card, provider, name.rpartition("@")[0] or name, here)


def _local(card: SystemCard, name: str, here: str) -> ModelIdentity:
    from pii_bench.models.local import WEIGHTS

    # A file of the user's may have the name of the packaged weights.
    packaged = name in WEIGHTS and card.settings.get("weights") == f"sha256:{WEIGHTS[name].sha256}"
    engine, _, version = str(card.settings.get("runtime", "")).partition(" ")
    return ModelIdentity(
        f"{UNKNOWN}/{name}",
        card.model,
        here,
        "open_weights" if packaged else UNKNOWN,
        engine=(engine, version) if version else None,
    )


def _elsewhere(card: SystemCard, provider: str, name: str, here: str) -> ModelIdentity:
    known = find_card(provider, name)
    opened = "open_weights" if known is not None and known.needs_base_url else UNKNOWN
    # Servers of one's own take the names of Hugging Face, which begin with the developer.
    full_name = name if "/" in name else f"{UNKNOWN}/{name}"
    return ModelIdentity(full_name, card.model, here, opened)
