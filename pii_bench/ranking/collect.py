"""From stored responses to rows and the leaderboard of a results folder, without any model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pii_bench.ranking.human import human_rows
from pii_bench.ranking.published import published_rows, reading_rows
from pii_bench.ranking.render import write_leaderboard
from pii_bench.ranking.rows import Row, rank, row_of
from pii_bench.ranking.scores import clusters_of
from pii_bench.ranking.stored import read_runs
from pii_bench.runs.records import Signature
from pii_bench.runs.store import locked
from pii_bench.tasks import Task

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from pii_bench.datasets.catalog import Dataset
    from pii_bench.ranking.stored import Run
    from pii_bench.runs.evaluation import Evaluation

_LONGEST_WAIT: Final = 300.0


@dataclass(frozen=True, slots=True)
class Collection:
    """Rows of ours, and the runs and lines that could not be scored, each with the reason."""

    rows: tuple[Row, ...]
    left_out: tuple[str, ...]


def collect(results: Path, loaded: Iterable[Dataset] = ()) -> Collection:
    """Score every run under `<results>/runs` and `<results>/reference`, and what is submitted.

    Args:
        results: folder of the runs.
        loaded: datasets that need not be read again.
    """
    found = read_runs(results, loaded)
    return Collection(tuple(row for run in found.runs for row in rows_of(run)), found.left_out)


def rows_of(run: Run) -> list[Row]:
    """The rows of a run: its own task, and masking where there are detection answers."""
    clusters = clusters_of(run.dataset.samples)
    rows = []
    for task, evaluation in run.scores.evaluations.items():
        before = [run.detection] if task is Task.MASKING and run.detection is not None else []
        rows.append(_row([*before, run], evaluation, clusters))
    return rows


def _row(runs: list[Run], evaluation: Evaluation, clusters: Mapping[str, str]) -> Row:
    """Of the runs that an answer is made of, the last asks for it."""
    system = runs[-1].manifest.system
    recipients = dict.fromkeys(run.manifest.system.unmasked_text_to for run in runs)
    return row_of(
        evaluation,
        _signature(runs, evaluation.task),
        clusters,
        source=runs[-1].source,
        oracle=system.oracle,
        names_subjects=runs[-1].names_subjects,
        unmasked_text_to=", ".join(recipients),
    )


def _signature(runs: list[Run], task: Task) -> Signature:
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
        prompts={
            run.manifest.system.prompt: run.manifest.system.prompt_sha256
            for run in runs
            if run.manifest.system.prompt
        },
        model=last.system.model,
        returned=sorted(frozenset[str]().union(*(run.scores.returned for run in runs))),
        settings={**last.system.settings, **others},
    )


@dataclass(frozen=True, slots=True)
class Board:
    """A leaderboard that was written.

    Attributes:
        rows: ranked; ours, those submitted, the readers', people's, and the published ones.
        files: where it is written, `leaderboard.csv` first.
        left_out: runs and lines that could not be scored, each with the reason.
    """

    rows: tuple[Row, ...]
    files: tuple[Path, ...]
    left_out: tuple[str, ...]


def update(results: Path, loaded: Iterable[Dataset] = ()) -> Board:
    """Score what is stored and write the leaderboard.

    Args:
        results: folder of the runs.
        loaded: datasets that need not be read again.

    Raises:
        ResultsError: it cannot be written, or another run writes it for minutes.
    """
    # Who collects last must write last: an older view would hide the rows of another run.
    with locked(results, wait=_LONGEST_WAIT):
        collection = collect(results, loaded)
        read = reading_rows({row.dataset for row in collection.rows})
        people, broken = human_rows(results)
        rows = rank([*collection.rows, *read, *people, *published_rows()])
        files = write_leaderboard(rows, results)
    return Board(tuple(rows), tuple(files), (*collection.left_out, *broken))
