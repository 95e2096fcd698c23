"""The benchmark as Python functions; `pii_bench` offers them without importing them before use."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pii_bench.datasets.catalog import Dataset, load_dataset, load_datasets
from pii_bench.errors import PiiBenchError
from pii_bench.ranking.rows import Source, row_of, with_intervals
from pii_bench.ranking.scores import clusters_of
from pii_bench.ranking.stored import read_run, rows_of, update, with_detection
from pii_bench.runs.evaluation import evaluate
from pii_bench.runs.jobs import Job, reserved, run_jobs
from pii_bench.runs.mask_text import mask_for_query
from pii_bench.runs.records import Signature
from pii_bench.runs.run import Silent
from pii_bench.systems import DEFAULT_SYSTEM
from pii_bench.systems.catalog import SystemOptions, build_systems
from pii_bench.systems.predictions import names_types, predicted_tasks, read_predictions

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable, Sequence

    from pii_bench.masking import Masked
    from pii_bench.ranking.rows import Row
    from pii_bench.runs.run import Progress
    from pii_bench.systems.base import System

__all__ = ["leaderboard", "load_dataset", "mask", "run", "score"]

Result = TypeVar("Result")


def run(
    systems: str | Iterable[System] = DEFAULT_SYSTEM,
    datasets: str | Dataset | Iterable[Dataset] = "all",
    *,
    limit: int | None = None,
    concurrency: int = 8,
    results: Path | str = "results",
    options: SystemOptions | None = None,
    progress: Progress | None = None,
) -> list[Row]:
    """Ask systems about datasets, save every response, and score.

    What was answered before, under the same request, is not asked again.

    Args:
        systems: a name as `--model` takes it, or systems, at most one for each task.
        datasets: a name, `all`, a path, or datasets that are loaded.
        limit: only the first samples of each dataset; None for all.
        concurrency: samples asked about at a time.
        results: folder of the responses.
        options: strategy, sampling, limits and caps of a system that is given by name.
        progress: is told how it goes; None to be told nothing.

    Returns:
        The rows of these systems on these datasets, with intervals, unranked.

    Raises:
        PiiBenchError: a name, option or dataset that is wrong; or the provider refuses, after
            which what arrived is saved.
    """
    if isinstance(systems, str):
        systems = build_systems(systems, options or SystemOptions())
    elif options is not None:
        raise PiiBenchError("options are for a system that is given by name: leave them out")
    if isinstance(datasets, str):
        datasets = load_datasets(datasets)
    elif isinstance(datasets, Dataset):
        datasets = [datasets]
    chosen, sets = list(systems), list(datasets)
    root = Path(results) / "runs"
    jobs = [Job.of(system, dataset, limit, root) for dataset in sets for system in chosen]
    with reserved(jobs):
        _finish(run_jobs(jobs, concurrency, None, progress or Silent()))
    runs = with_detection(read_run(job.files.manifest, job.dataset) for job in jobs)
    return with_intervals([row for run in runs for row in rows_of(run)])


def score(predictions: Path | str, dataset: str | Dataset) -> list[Row]:
    """Score a file of predictions, wherever they were made.

    Args:
        predictions: JSON Lines, one line a sample.
        dataset: a name or path, or a dataset that is loaded.

    Returns:
        A row for each task that the file answers, with intervals, unranked.

    Raises:
        PiiBenchError: the dataset or the predictions are broken, or answer nothing.
    """
    path = Path(predictions)
    gold = load_dataset(dataset) if isinstance(dataset, str) else dataset
    found = read_predictions(path, [sample.id for sample in gold.samples])
    tasks = predicted_tasks(found)
    if not tasks:
        raise PiiBenchError(f"{path}: no line has an answer; nothing to score")
    clusters = clusters_of(gold.samples)
    return with_intervals(
        [
            row_of(
                evaluate(task, gold.samples, found),
                Signature(gold.name, gold.sha256, task, model=path.stem),
                clusters,
                source=Source.RUN,
                oracle=False,
                names_subjects=gold.names_subjects,
                names_types=names_types(found),
            )
            for task in tasks
        ]
    )


def leaderboard(results: Path | str = "results") -> list[Row]:
    """Score everything that is stored in a results folder again, and write the leaderboard there.

    Returns:
        Its rows, ranked: ours, those submitted, and the published ones.

    Raises:
        ResultsError: it cannot be written.
    """
    return list(update(Path(results)).rows)


def mask(
    text: str,
    query: str,
    systems: str | Sequence[System] = DEFAULT_SYSTEM,
    *,
    options: SystemOptions | None = None,
) -> Masked:
    """Mask what a query does not need; `pii_bench.masking.unmask` puts it back into an answer.

    Args:
        text: what is masked.
        query: what will be asked about it; it is not masked.
        systems: a name as `--model` takes it, or systems for detection and relevance.
        options: of systems that are given by name.

    Raises:
        MaskingError: the system gave no answer on which the text can be masked.
        PiiBenchError: a blank query, or systems that do not answer both tasks.
    """
    if isinstance(systems, str):
        systems = build_systems(systems, options or SystemOptions())
    return _finish(mask_for_query(text, query, systems))


def _finish(work: Coroutine[Any, Any, Result]) -> Result:
    """Run to the end, also where a loop is running already, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()
