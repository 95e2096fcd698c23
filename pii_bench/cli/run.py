"""`pii-bench run`."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.console import Console

from pii_bench.cli.leaderboard import update_leaderboard
from pii_bench.cli.progress import RunProgress
from pii_bench.cli.tables import print_rows
from pii_bench.datasets.catalog import load_datasets
from pii_bench.errors import PiiBenchError
from pii_bench.evaluation import applicable
from pii_bench.leaderboard.rows import Source
from pii_bench.models.catalog import LOCAL, ModelOptions, resolve
from pii_bench.runner.manifest import DatasetRef, Manifest, write_manifest
from pii_bench.runner.records import Failure
from pii_bench.runner.run import run_system
from pii_bench.runner.store import RunFiles, RunStore, read_lines
from pii_bench.systems.catalog import SystemOptions, build_systems
from pii_bench.tasks import Task

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence
    from pathlib import Path

    from pii_bench.datasets.catalog import Dataset
    from pii_bench.datasets.sample import Sample
    from pii_bench.leaderboard.rows import Row
    from pii_bench.systems.base import System


@dataclass(frozen=True, slots=True)
class Job:
    """One system on one dataset, and the samples that were asked for."""

    system: System
    dataset: Dataset
    samples: tuple[Sample, ...]
    files: RunFiles


def run_benchmark(arguments: argparse.Namespace) -> bool:
    """Run, score, update the leaderboard and print the rows of this run beside the paper's.

    Returns:
        Whether every sample asked for has an answer.

    Raises:
        PiiBenchError: wrong arguments or input, found before any sample is asked about; or
            the provider refuses, after which what arrived is saved.
    """
    if (full_name := resolve(arguments.model)) != arguments.model:
        print(f"model {arguments.model} is {full_name}", file=sys.stderr)
    options = SystemOptions(
        strategy=arguments.strategy,
        max_tokens=arguments.max_tokens,
        model=ModelOptions(base_url=arguments.base_url, timeout=float(arguments.timeout)),
        label_map=arguments.label_map,
    )
    systems = _for_task(arguments.task, arguments.model, build_systems(arguments.model, options))
    datasets = load_datasets(arguments.dataset)
    _report_faults(datasets)
    jobs = [
        _job(system, dataset, arguments.limit, arguments.results / "runs")
        for dataset in datasets
        for system in systems
    ]
    try:
        asyncio.run(_run_jobs(systems, jobs, arguments.concurrency or _concurrency(systems)))
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return _report_missing(jobs)
    except PiiBenchError:
        _report_missing(jobs)
        raise
    rows, _ = update_leaderboard(arguments.results)
    tasks = set(Task) if arguments.task == "all" else {Task(arguments.task)}
    print_rows([row for row in rows if row.task in tasks and _is_shown(row, jobs)])
    return _report_missing(jobs)


async def _run_jobs(systems: Sequence[System], jobs: Sequence[Job], concurrency: int) -> None:
    try:
        with RunProgress(Console(stderr=True)) as progress:
            for job in jobs:
                progress.label(f"{job.system.card.prompt} on {job.dataset.name}")
                await _run_job(job, concurrency, progress)
    finally:
        for system in systems:
            await system.close()


async def _run_job(job: Job, concurrency: int, progress: RunProgress) -> None:
    system = job.system
    everything = applicable(system.card.task, job.dataset.samples)
    requests = {sample.id: system.request_hash(sample) for sample in everything}
    with RunStore(job.files, requests) as store:
        write_manifest(job.files.manifest, Manifest(system.card, DatasetRef.of(job.dataset)))
        await run_system(system, job.samples, store, concurrency=concurrency, observer=progress)


def _for_task(task: str, name: str, systems: Sequence[System]) -> list[System]:
    """The systems whose answers a task needs: masking needs both, `all` what there is."""
    both = {Task.DETECTION, Task.QUERY_RELATED}
    needed = both if task in {"all", Task.MASKING} else {Task(task)}
    chosen = [system for system in systems if system.card.task in needed]
    answered = {system.card.task for system in chosen}
    if task != "all" and answered != needed:
        missing = ", ".join(sorted(needed - answered))
        raise PiiBenchError(f"system {name!r} does not answer {missing}")
    return chosen


def _concurrency(systems: Sequence[System]) -> int:
    # A local model has one processor.
    local = any(system.card.model.startswith(f"{LOCAL}/") for system in systems)
    return 1 if local else 8


def _job(system: System, dataset: Dataset, limit: int | None, root: Path) -> Job:
    card = system.card
    samples = applicable(card.task, dataset.samples[:limit])
    return Job(
        system,
        dataset,
        tuple(samples),
        RunFiles.at(root, card.model, card.prompt, dataset.name),
    )


def _is_shown(row: Row, jobs: Sequence[Job]) -> bool:
    """Whether a row is one of this run, or the paper's on a dataset of the same name."""
    if row.source is Source.PUBLISHED:
        return row.dataset in {job.dataset.name for job in jobs}
    ran = {(job.system.card.model, job.system.card.prompt, job.dataset.name) for job in jobs}
    return row.source is Source.RUN and (row.model, row.strategy, row.dataset) in ran


def _report_faults(datasets: Sequence[Dataset]) -> None:
    for dataset in datasets:
        if dataset.faults:
            count = len(dataset.faults)
            print(f"{dataset.source}: annotation faults left out: {count}", file=sys.stderr)
            for fault in dataset.faults:
                print(f"  {fault}", file=sys.stderr)


def _report_missing(jobs: Sequence[Job]) -> bool:
    """Say what has no answer yet; whether nothing is missing."""
    complete = True
    for job in jobs:
        missing, reasons = _missing(job)
        if missing:
            complete = False
            why = "".join(f", {kind} {count}" for kind, count in sorted(reasons.items()))
            print(
                f"{job.system.card.prompt} on {job.dataset.name}: {missing} of "
                f"{len(job.samples)} samples have no answer{why}; run again to ask only these",
                file=sys.stderr,
            )
    return complete


def _missing(job: Job) -> tuple[int, Counter[str]]:
    asked = {sample.id for sample in job.samples}
    responses = job.files.responses
    records = [r for _, r in read_lines(responses)] if responses.exists() else []
    answered = {r.id for r in records if not isinstance(r.response, Failure)}
    reasons = Counter(
        r.response.kind
        for r in records
        if isinstance(r.response, Failure) and r.id in asked - answered
    )
    return len(asked - answered), reasons
