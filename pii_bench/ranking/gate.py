"""Quality gates: minimum figures, and no significant loss against a baseline."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from pii_bench.errors import InputFileError, PiiBenchError, UnknownNameError
from pii_bench.files import write_whole
from pii_bench.ranking.rows import METRICS
from pii_bench.ranking.scores import Scores
from pii_bench.ranking.significance import SIGNIFICANT, compare
from pii_bench.tasks import Task

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from pii_bench.ranking.rows import Row

Baseline = dict[tuple[str, str], Scores]
"""(dataset, task) to the headline of each sample."""


@dataclass(frozen=True, slots=True)
class Least:
    """The minimum of a metric for all rows of a task."""

    task: Task
    metric: str
    figure: float

    @classmethod
    def parse(cls, text: str) -> Least:
        """Parse text such as `masking.h=0.7`.

        Raises:
            UnknownNameError: the task or metric does not exist.
            PiiBenchError: the text has another form.
        """
        name, equals, figure = text.partition("=")
        task, dot, metric = name.partition(".")
        if not equals or not dot or not _is_share(figure):
            what = "must be TASK.METRIC=FIGURE, such as masking.h=0.7, with a figure from 0 to 1"
            raise PiiBenchError(f"--min {text!r} {what}")
        if task not in {*Task}:
            raise UnknownNameError("task", task, [*Task])
        if metric not in METRICS:
            raise UnknownNameError("metric", metric, METRICS)
        return cls(Task(task), metric, float(figure))


def shortfalls(
    rows: Sequence[Row], least: Sequence[Least], baseline: Baseline | None
) -> Iterator[str]:
    """Yield a line for each figure below its minimum or below the baseline.

    A headline is below the baseline if it is lower and a paired permutation test on the samples
    in common has p < 0.05.

    Raises:
        PiiBenchError: no row has the metric of a minimum, or the baseline lacks a row.
    """
    for minimum in least:
        task, metric = minimum.task, minimum.metric
        values = [
            (row, row.metrics[metric]) for row in rows if row.task is task and metric in row.metrics
        ]
        if not values:
            raise PiiBenchError(f"--min {task}.{metric}: no row has this figure")
        for row, value in values:
            if value < minimum.figure:
                yield (
                    f"{row.dataset}, {task}: {metric} is {value:.3f}, "
                    f"below the minimum {minimum.figure:.3f}"
                )
    if baseline is None:
        return
    for row in rows:
        if (ours := row.by_sample.get(row.headline_name)) is None:
            continue
        theirs = baseline.get((row.dataset, row.task))
        comparison = None if theirs is None else compare(ours, theirs)
        if comparison is None:
            raise PiiBenchError(
                f"the baseline has no row for {row.dataset}, {row.task} with these samples: "
                "`gate --write-baseline` writes one"
            )
        if comparison.difference < 0 and comparison.p < SIGNIFICANT:
            yield (
                f"{row.dataset}, {row.task}: {row.headline_name} is {comparison.first.figure:.3f}, "
                f"the baseline's {comparison.second.figure:.3f} (p {comparison.p:.3f})"
            )


def partly_compared(rows: Sequence[Row], baseline: Baseline) -> Iterator[str]:
    """Yield a line for each row of which the baseline has some samples only."""
    for row in rows:
        ours, theirs = row.by_sample.get(row.headline_name), baseline.get((row.dataset, row.task))
        if ours is None or theirs is None:
            continue
        common = len(set(ours.ids) & set(theirs.ids))
        if common < len(ours.ids):
            share = f"{common} of {len(ours.ids)} samples"
            yield f"{row.dataset}, {row.task}: {share} are compared, the baseline lacks the others"


def write_baseline(path: Path, rows: Sequence[Row]) -> None:
    """Write the headlines of rows by sample, as the baseline of later gates.

    Raises:
        ResultsError: the file cannot be written.
    """
    records = [
        {"dataset": row.dataset, "task": row.task, "scores": asdict(scores)}
        for row in rows
        if (scores := row.by_sample.get(row.headline_name)) is not None
    ]
    write_whole(path, json.dumps(records) + "\n")


def read_baseline(path: Path) -> Baseline:
    """Read a baseline.

    Raises:
        InputFileError: the file cannot be read, or is not a baseline.
    """
    try:
        records: list[Mapping[str, Any]] = json.loads(path.read_bytes())
        return {
            (record["dataset"], record["task"]): _scores(record["scores"]) for record in records
        }
    except OSError as error:
        raise InputFileError(path, error.strerror or "cannot be read") from error
    except (ValueError, KeyError, TypeError) as error:
        raise InputFileError(path, "is no baseline; `gate --write-baseline` makes one") from error


def _scores(record: Mapping[str, Any]) -> Scores:
    parts = record["parts"]
    return Scores(
        tuple(record["ids"]),
        tuple(record["clusters"]),
        tuple(record["values"]),
        None if parts is None else (tuple(parts[0]), tuple(parts[1])),
    )


def _is_share(text: str) -> bool:
    try:
        return 0 <= float(text) <= 1
    except ValueError:
        return False
