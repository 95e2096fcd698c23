"""`pii-bench run`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from pii_bench.cli.progress import RunProgress
from pii_bench.cli.tables import print_faults, print_missing
from pii_bench.cli.terminal import tell
from pii_bench.datasets.catalog import load_datasets
from pii_bench.errors import PiiBenchError
from pii_bench.models.calls.guarded import CallPolicy
from pii_bench.models.catalog import LOCAL, ModelOptions, resolve
from pii_bench.models.table import ModelStatus, find_card
from pii_bench.ranking.source import Source
from pii_bench.runs.jobs import (
    Job,
    batch_service,
    refuse_uncollected,
    reserved,
    run_jobs,
)
from pii_bench.systems.catalog import SystemOptions, build_systems
from pii_bench.systems.exposure import require_local
from pii_bench.tasks import Task

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from pii_bench.models.table import ModelCard
    from pii_bench.ranking.rows import Row
    from pii_bench.systems.base import System


def run_benchmark(arguments: argparse.Namespace) -> bool:
    """Run, score, update the leaderboard and print the rows of this run beside the paper's.

    Returns:
        Whether every sample asked for has an answer; True for a dry run.

    Raises:
        PiiBenchError: wrong arguments or input, found before any sample is asked about; or
            the provider refuses, after which what arrived is saved.
    """
    card = _introduce(arguments.model, arguments.base_url)
    concurrency = arguments.concurrency or _concurrency(arguments.model)
    datasets = load_datasets(arguments.dataset)
    built = build_systems(arguments.model, _options(arguments, concurrency))
    systems = _for_task(arguments.task, arguments.model, built)
    if arguments.local_only:
        require_local(systems)
    if arguments.batch is not None:
        for system in systems:
            batch_service(system)
    for dataset in datasets:
        print_faults(dataset)
    root = arguments.results / "runs"
    jobs = [
        Job.of(system, dataset, arguments.limit, root) for dataset in datasets for system in systems
    ]
    if arguments.dry_run:
        from pii_bench.cli.cost import print_estimate

        reasons = card is not None and card.reasons
        print_estimate(jobs, reasons=reasons, batched=arguments.batch is not None)
        return True
    with reserved(jobs):
        if arguments.batch is None:
            refuse_uncollected(jobs)
        try:
            with RunProgress() as progress:
                complete = asyncio.run(run_jobs(jobs, concurrency, arguments.batch, progress))
        except KeyboardInterrupt:
            tell("interrupted")
            return print_missing(jobs)
        except PiiBenchError:
            print_missing(jobs)
            raise
    from pii_bench.cli.leaderboard import update_leaderboard
    from pii_bench.cli.tables import print_rows

    rows, _ = update_leaderboard(arguments.results, datasets)
    tasks = set(Task) if arguments.task == "all" else {Task(arguments.task)}
    print_rows([row for row in rows if row.task in tasks and _is_shown(row, jobs)])
    return complete or print_missing(jobs)


def _introduce(name: str, base_url: str | None) -> ModelCard | None:
    """Say what a name stands for, and that its provider will not serve it for long."""
    full_name = resolve(name)
    if full_name != name:
        tell(f"model {name} is {full_name}")
    provider, _, model_id = full_name.partition("/")
    card = find_card(provider, model_id)
    if card is not None and card.status is ModelStatus.DEPRECATED and base_url is None:
        leaves = f"model {full_name} will be retired on {card.retirement}"
        tell(f"{leaves}: use {card.substitute} after that")
    return card


def _options(arguments: argparse.Namespace, concurrency: int) -> SystemOptions:
    return SystemOptions(
        strategy=arguments.strategy,
        max_tokens=arguments.max_tokens,
        temperature=arguments.temperature,
        output=arguments.output,
        votes=arguments.votes,
        model=ModelOptions(
            base_url=arguments.base_url,
            timeout=float(arguments.timeout),
            asked=not arguments.dry_run,
        ),
        calls=CallPolicy(
            concurrency=concurrency,
            requests_per_minute=arguments.rpm,
            tokens_per_minute=arguments.tpm,
            max_usd=arguments.max_usd,
            price=arguments.price,
        ),
        label_map=arguments.label_map,
    )


def _concurrency(name: str) -> int:
    # A local model has one processor.
    return 1 if resolve(name).startswith(f"{LOCAL}/") else 8


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


def _is_shown(row: Row, jobs: Sequence[Job]) -> bool:
    """Whether a row is one of this run, or the paper's on a dataset of the same name."""
    if not row.source.is_system:
        return row.dataset in {job.dataset.name for job in jobs}
    ran = {(job.system.card.model, job.system.card.prompt, job.dataset.name) for job in jobs}
    return row.source is Source.RUN and (row.model, row.strategy, row.dataset) in ran
