"""`pii-bench run --config`: every model with every strategy on every dataset of a file."""

from __future__ import annotations

import argparse
import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pii_bench.cli.options import price_if_unknown
from pii_bench.cli.run import get_responses, log_missing, plan, print_summary, run_keys
from pii_bench.cli.terminal import echo_estimates, log, log_faults
from pii_bench.datasets.catalog import load_datasets
from pii_bench.errors import InputFileError, PiiBenchError, UnknownNameError
from pii_bench.models.catalog import TIMEOUT, listed_price
from pii_bench.runs.jobs import estimate_jobs, ledger_of
from pii_bench.runs.matrix import Cell, Matrix, read_matrix
from pii_bench.systems.base import close_all

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pii_bench.datasets.catalog import Dataset
    from pii_bench.models.budget import Estimate
    from pii_bench.runs.jobs import Job

_OVERRIDES: Final = ("task", "concurrency", "max_usd", "results")

# The options that reach some systems only, with the values that switch them off.
_FOR_LABELLED: Final = dict.fromkeys(
    ("taxonomy", "shots", "shots_source", "shots_by", "shots_seed", "chunk")
)
_FOR_CHAT: Final = {"max_tokens": None, "temperature": None, "votes": None, "output": "text"}
_FOR_CALLED: Final = {
    **dict.fromkeys(("base_url", "rpm", "tpm", "price", "max_usd", "batch")),
    "timeout": TIMEOUT,
}


def run_matrix(arguments: argparse.Namespace) -> bool:
    """Run every cell of a file, then update the leaderboard and print one summary.

    A cell that cannot run is logged, and the next one runs. The cap on the cost is shared: each
    cell may spend what the cells before it left. A wrong file is found before the first call.

    Returns:
        True if every sample of every cell has an answer; for a dry run, if every cell could run.
    """
    matrix = read_matrix(arguments.config)
    # Options of the command line replace those of the file.
    given = {name: getattr(arguments, name) for name in _OVERRIDES}
    matrix = replace(matrix, **{name: value for name, value in given.items() if value is not None})
    _check_prices(matrix, arguments)
    datasets = _load_datasets(matrix, arguments.config)
    for dataset in datasets:
        log_faults(dataset)
    arguments.task, arguments.results = matrix.task, matrix.results
    arguments.limit = matrix.limit
    if arguments.dry_run:
        return _estimate(matrix, arguments, datasets)
    budget, cells = matrix.max_usd, matrix.cells()
    keys: list[tuple[str, str, str]] = []
    incomplete: list[str] = []
    for number, cell in enumerate(cells, start=1):
        log(f"{number} of {len(cells)}: {cell.name}")
        cell_arguments = _cell_arguments(cell, matrix, arguments, budget)
        jobs: Sequence[Job] = ()
        try:
            planned = plan(cell_arguments, datasets)
            jobs = planned.jobs
            complete = get_responses(planned, cell_arguments.batch) or log_missing(jobs)
        except KeyboardInterrupt:
            return False
        except PiiBenchError as error:
            log(f"{cell.name}: {error}")
            complete = False
        keys += run_keys(jobs)
        if not complete:
            incomplete.append(cell.name)
        # The jobs of a cell share one ledger; calls in batches count with their upper bound.
        ledger = ledger_of(jobs[0].system) if jobs else None
        if budget is not None and ledger is not None:
            budget = max(0.0, budget - (ledger.spent_usd or 0.0) - ledger.reserved_usd)
    if keys:
        print_summary(arguments, datasets, keys)
    _log_incomplete(incomplete, len(cells))
    return not incomplete


def _check_prices(matrix: Matrix, arguments: argparse.Namespace) -> None:
    """Refuse a cap if the price of a model is unknown, and a price that no model needs."""
    called = dict.fromkeys(cell.model for cell in matrix.cells() if cell.is_called)
    unpriced = [model for model in called if listed_price(model, arguments.base_url) is None]
    if arguments.price is not None and not unpriced:
        raise PiiBenchError(
            "--price is for models of unknown price: the file names none (see `pii-bench models`)"
        )
    if matrix.max_usd is not None and arguments.price is None and unpriced:
        raise PiiBenchError(
            f"a cap of {matrix.max_usd:g} USD needs the price of every model; unknown: "
            f"{', '.join(unpriced)}; give it with --price IN,OUT (USD per million tokens)"
        )


def _load_datasets(matrix: Matrix, path: Path) -> list[Dataset]:
    """Load each dataset once, even if the file names it twice (`all` and `hard`)."""
    try:
        datasets = [dataset for name in matrix.datasets for dataset in load_datasets(name)]
    except UnknownNameError as error:
        raise InputFileError(path, str(error)) from None
    return list({dataset.name: dataset for dataset in datasets}.values())


def _cell_arguments(
    cell: Cell, matrix: Matrix, arguments: argparse.Namespace, budget: float | None
) -> argparse.Namespace:
    """Return the arguments of a cell, without the options that do not apply to its system."""
    values = vars(arguments) | {
        "model": cell.model,
        "strategy": cell.strategy,
        "concurrency": matrix.concurrency,
        "max_usd": budget,
    }
    if not cell.is_chat:
        values |= _FOR_CHAT
    if not cell.is_labelled:
        values |= _FOR_LABELLED
    if not cell.is_called:
        values |= _FOR_CALLED
    else:
        values["price"] = price_if_unknown(arguments, cell.model, arguments.base_url)
    return argparse.Namespace(**values)


def _estimate(matrix: Matrix, arguments: argparse.Namespace, datasets: Sequence[Dataset]) -> bool:
    """Print the estimates of all cells; return True if every cell could run."""
    # Keyed by file: the strategies of a model share its detection.
    estimates: dict[Path, tuple[Job, Estimate]] = {}
    incomplete: list[str] = []
    cells = matrix.cells()
    for cell in cells:
        cell_arguments = _cell_arguments(cell, matrix, arguments, matrix.max_usd)
        try:
            planned = plan(cell_arguments, datasets)
        except PiiBenchError as error:
            log(f"{cell.name}: {error}")
            incomplete.append(cell.name)
            continue
        batched = cell_arguments.batch is not None
        for job, estimate in estimate_jobs(planned.jobs, reasons=planned.reasons, batched=batched):
            estimates[job.files.responses] = job, estimate
        asyncio.run(close_all(job.system for job in planned.jobs))
    if estimates:
        echo_estimates(list(estimates.values()), as_json=arguments.json, models=True)
    _log_incomplete(incomplete, len(cells))
    return not incomplete


def _log_incomplete(names: Sequence[str], count: int) -> None:
    if names:
        log(f"{len(names)} of {count} are incomplete: {', '.join(names)}; run again to continue")
