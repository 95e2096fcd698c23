"""The public Python functions; `pii_bench` imports this module on first use."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pii_bench.datasets.catalog import Dataset, load_dataset, load_datasets
from pii_bench.errors import PiiBenchError
from pii_bench.models.calls import MOST_CALLS
from pii_bench.ranking.rows import Source, row_of, with_intervals
from pii_bench.ranking.scores import clusters_of
from pii_bench.ranking.stored import score_runs, update
from pii_bench.runs.evaluation import evaluate
from pii_bench.runs.jobs import Job, reserved, run_jobs
from pii_bench.runs.mask_text import mask_for_query
from pii_bench.runs.progress import Progress
from pii_bench.runs.records import Signature
from pii_bench.systems import DEFAULT_SYSTEM
from pii_bench.systems.base import close_all
from pii_bench.systems.catalog import SystemOptions, build_systems
from pii_bench.systems.plug_ins import plug_ins
from pii_bench.systems.predictions import names_types, read_predictions

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable, Sequence

    from pii_bench.masking import Masked
    from pii_bench.ranking.rows import Row
    from pii_bench.systems.base import System

__all__ = ["leaderboard", "load_dataset", "mask", "run", "score"]

Result = TypeVar("Result")


def run(
    systems: str | Iterable[System] = DEFAULT_SYSTEM,
    datasets: str | Path | Dataset | Iterable[Dataset] = "all",
    *,
    limit: int | None = None,
    concurrency: int = 8,
    results: Path | str = "results",
    options: SystemOptions | None = None,
    progress: Progress | None = None,
) -> list[Row]:
    """Run systems on datasets, save every response, and score them.

    Samples whose stored response answers the same request are not asked again.

    Args:
        systems: a name as for `--model`, or systems, at most one per task, which are closed at the
            end.
        datasets: a name, `all`, a path, or datasets as `load_dataset` returns them.
        limit: use only the first samples of each dataset, at least 1; None for all.
        concurrency: samples in flight at a time, 1 to 1000.
        results: folder for the responses.
        options: strategy, sampling, limits and caps; only for a system given by name.
        progress: receives progress events, and a note of each of the first samples on which the
            code of a system raised; None for no reporting.

    Returns:
        The rows of these systems on these samples, with intervals, unranked.

    Raises:
        PiiBenchError: a wrong name, option or dataset; or the provider refuses every call, in
            which case the responses so far are saved.
    """
    if limit is not None and limit < 1:
        raise PiiBenchError(f"limit must be a whole number from 1, not {limit}")
    if not 1 <= concurrency <= MOST_CALLS:
        raise PiiBenchError(
            f"concurrency must be a whole number from 1 to {MOST_CALLS}, not {concurrency}"
        )
    chosen = _systems(systems, options)
    if isinstance(datasets, str | Path):
        sets = load_datasets(str(datasets))
    elif isinstance(datasets, Dataset):
        sets = (_whole(datasets),)
    else:
        sets = tuple(map(_whole, datasets))
    root = Path(results) / "runs"
    jobs = [Job.of(system, dataset, limit, root) for dataset in sets for system in chosen]
    with reserved(jobs):
        _finish(run_jobs(jobs, concurrency, None, progress or Progress()))
    return score_runs([(job.files.manifest, job.dataset) for job in jobs], limit)


def score(predictions: Path | str, dataset: str | Path | Dataset) -> list[Row]:
    """Score a file of predictions that were made elsewhere: JSON Lines, one sample per line.

    `dataset` is a name, a path, or a dataset as `load_dataset` returns it.

    Returns:
        One row per task of the dataset that the file answers, with intervals, unranked.

    Raises:
        PiiBenchError: the dataset or the predictions cannot be read, or no line answers a task of
            the dataset.
    """
    path = Path(predictions)
    gold = load_dataset(dataset) if isinstance(dataset, str | Path) else _whole(dataset)
    file = read_predictions(path, gold.samples)
    found = dict(file)
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
            for task in file.tasks
        ]
    )


def leaderboard(results: Path | str = "results") -> list[Row]:
    """Score all stored runs of a results folder and write the leaderboard files there.

    The rows have ranks where they compete.

    Raises:
        ResultsError: the files cannot be written.
    """
    return list(update(Path(results)).rows)


def mask(
    text: str,
    query: str,
    systems: str | Iterable[System] = DEFAULT_SYSTEM,
    *,
    options: SystemOptions | None = None,
) -> Masked:
    """Mask the PII in a text that a query does not need; the query itself is not masked.

    `pii_bench.masking.unmask` restores the masked values in an answer.

    Args:
        text: the text to mask.
        query: the question about the text.
        systems: a name as for `--model`, or systems for detection and relevance, which are closed
            after each text.
        options: only for systems given by name.

    Raises:
        MaskingError: the system gave no usable answer.
        PiiBenchError: the query is blank, or the systems do not cover both tasks.
    """
    return _finish(_mask_and_close(text, query, _systems(systems, options)))


async def _mask_and_close(text: str, query: str, systems: Sequence[System]) -> Masked:
    # The next text has another event loop, in which open connections would fail.
    try:
        return await mask_for_query(text, query, systems)
    finally:
        await close_all(systems)


def _systems(systems: str | Iterable[System], options: SystemOptions | None) -> tuple[System, ...]:
    """Build the systems of a name, or wrap a user's systems."""
    if isinstance(systems, str):
        return build_systems(systems, options or SystemOptions())
    if options is not None:
        raise PiiBenchError("options apply only to a system given by name: leave them out")
    return plug_ins(systems)


def _whole(dataset: object) -> Dataset:
    """Return the dataset if it is what its source contains, and refuse it otherwise."""
    if not isinstance(dataset, Dataset):
        raise PiiBenchError(
            f"datasets came with {type(dataset).__name__}; allowed: a name, or datasets as "
            "load_dataset returns them"
        )
    # Rows carry the hash of the source, and the leaderboard scores the run against the source.
    if load_dataset(dataset.source) != dataset:
        raise PiiBenchError(
            f"dataset {dataset.name!r} came with changed samples; allowed: those of "
            f"{dataset.source!r} (limit takes the first ones; write other samples to a file)"
        )
    return dataset


def _finish(work: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine to its end, also inside a running event loop, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()
