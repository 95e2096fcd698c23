"""`pii-bench run --config`: one run after another."""

from __future__ import annotations

import argparse
import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pii_bench.cli.estimates import print_estimates
from pii_bench.cli.run import ask, log_missing, plan, print_summary, ran
from pii_bench.cli.terminal import log, log_faults
from pii_bench.datasets.catalog import load_datasets
from pii_bench.errors import InputFileError, PiiBenchError, UnknownNameError
from pii_bench.runs.estimates import estimate_jobs
from pii_bench.runs.jobs import close_systems, ledger_of
from pii_bench.runs.matrix import Cell, Matrix, read_matrix

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pii_bench.datasets.catalog import Dataset
    from pii_bench.models.budget import Estimate
    from pii_bench.runs.jobs import Job

_OVERRIDING: Final = frozenset({"task", "concurrency", "max_usd", "results"})
"""What the command line may say instead of the file."""

_OF_LABELLED: Final = dict.fromkeys(
    ("taxonomy", "shots", "shots_source", "shots_by", "shots_seed", "chunk")
)
_OF_CHATS: Final = {"max_tokens": None, "temperature": None, "votes": None, "output": "text"}
_OF_CALLS: Final = dict.fromkeys(("base_url", "rpm", "tpm", "price", "max_usd", "batch"))


def run_matrix(arguments: argparse.Namespace) -> bool:
    """Run every cell of a file, then update the leaderboard and print one summary.

    A cell that cannot run is told, and the next one goes on. One sum is the cap of all: each
    cell may spend what those before it left.

    Returns:
        Whether every sample of every cell has an answer; of a dry run, whether every cell
        could run.

    Raises:
        PiiBenchError: the file or a dataset is wrong, found before anything is asked.
    """
    matrix = read_matrix(arguments.config)
    given = {name: getattr(arguments, name) for name in _OVERRIDING & arguments.given}
    matrix = replace(matrix, **given)
    datasets = _load(matrix, arguments.config)
    for dataset in datasets:
        log_faults(dataset)
    arguments.task, arguments.results = matrix.task, matrix.results
    if arguments.dry_run:
        return _estimate(matrix, arguments, datasets)
    left, cells = matrix.max_usd, matrix.cells()
    shown: dict[tuple[str, str, str], None] = {}
    incomplete: list[str] = []
    for number, cell in enumerate(cells, start=1):
        log(f"{number} of {len(cells)}: {cell.name}")
        jobs: Sequence[Job] = ()
        own = _of_cell(cell, matrix, arguments, left)
        try:
            planned = plan(own, datasets)
            jobs = planned.jobs
            complete = ask(planned, own.batch) or log_missing(jobs)
        except KeyboardInterrupt:
            return False
        except PiiBenchError as error:
            log(f"{cell.name}: {error}")
            complete = False
        shown |= ran(jobs)
        incomplete += [] if complete else [cell.name]
        if left is not None and jobs:
            left = max(0.0, left - _spent(jobs[0]))
    if shown:
        print_summary(arguments, datasets, shown)
    _tell_incomplete(incomplete, len(cells))
    return not incomplete


def _load(matrix: Matrix, path: Path) -> list[Dataset]:
    """The datasets, each once, though `all` may hold another that is named too."""
    try:
        loaded = [dataset for name in matrix.datasets for dataset in load_datasets(name)]
    except UnknownNameError as error:
        raise InputFileError(path, str(error)) from None
    return list({dataset.name: dataset for dataset in loaded}.values())


def _of_cell(
    cell: Cell, matrix: Matrix, arguments: argparse.Namespace, left: float | None
) -> argparse.Namespace:
    """The arguments of a cell as a run of its own; options for chat models reach only those."""
    values = vars(arguments) | {
        "model": cell.model,
        "strategy": cell.strategy,
        "limit": matrix.limit,
        "concurrency": matrix.concurrency,
        "max_usd": left,
    }
    if not cell.is_chat:
        values |= _OF_CHATS
    if not cell.is_labelled:
        values |= _OF_LABELLED
    if not cell.is_called:
        values |= _OF_CALLS
    return argparse.Namespace(**values)


def _spent(job: Job) -> float:
    """What the calls of a cell cost, those in batches at their worst; its jobs share a ledger."""
    ledger = ledger_of(job.system)
    return 0.0 if ledger is None else (ledger.spent_usd or 0.0) + ledger.reserved_usd


def _estimate(matrix: Matrix, arguments: argparse.Namespace, datasets: Sequence[Dataset]) -> bool:
    told: dict[Path, tuple[Job, Estimate]] = {}
    incomplete: list[str] = []
    cells = matrix.cells()
    for cell in cells:
        own = _of_cell(cell, matrix, arguments, matrix.max_usd)
        try:
            planned = plan(own, datasets)
        except PiiBenchError as error:
            log(f"{cell.name}: {error}")
            incomplete.append(cell.name)
            continue
        batched = own.batch is not None
        # By file: the strategies of a model share its detection.
        for job, each in estimate_jobs(planned.jobs, reasons=planned.reasons, batched=batched):
            told[job.files.responses] = job, each
        asyncio.run(close_systems(planned.jobs))
    if told:
        print_estimates(list(told.values()), as_json=arguments.json, models=True)
    _tell_incomplete(incomplete, len(cells))
    return not incomplete


def _tell_incomplete(names: Sequence[str], count: int) -> None:
    if names:
        log(f"{len(names)} of {count} are incomplete: {', '.join(names)}; run again to go on")
