"""Quality gates: minimum figures, and no significant loss against a baseline."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from math import nan
from typing import TYPE_CHECKING, Any, TypeAlias

from pii_bench.errors import InputFileError, PiiBenchError, UnknownNameError
from pii_bench.files import write_whole
from pii_bench.ranking.rows import HEADLINE_NAMES, METRICS
from pii_bench.ranking.scores import Scores
from pii_bench.ranking.significance import ALPHA, compare
from pii_bench.tasks import Task

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from pii_bench.ranking.rows import Row

Baseline: TypeAlias = dict[tuple[str, str], dict[str, Scores]]
"""(dataset, task) to the figure of each sample, by column."""


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
        name, _, figure = text.partition("=")
        task, dot, metric = name.partition(".")
        try:
            minimum = float(figure)
        except ValueError:
            minimum = nan
        if not dot or not 0 <= minimum <= 1:
            what = "must be TASK.METRIC=FIGURE, such as masking.h=0.7, with a figure from 0 to 1"
            raise PiiBenchError(f"--min {text!r} {what}")
        if task not in {*Task}:
            raise UnknownNameError("task", task, [*Task])
        if metric not in METRICS:
            raise UnknownNameError("metric", metric, METRICS)
        return cls(Task(task), metric, minimum)


def shortfalls(
    rows: Sequence[Row], least: Sequence[Least], baseline: Baseline | None
) -> Iterator[str]:
    """Yield a line for each figure below its minimum or below the baseline.

    A headline is below the baseline if it is lower and a paired permutation test on the samples
    in common has p < 0.05. Ent-F1 takes its place if a detector or the baseline has no Strict-F1.

    Raises:
        PiiBenchError: no row has the metric of a minimum, or the baseline lacks a row.
    """
    for minimum in least:
        task, metric = minimum.task, minimum.metric
        judged = [row for row in rows if row.task is task and metric in row.metrics]
        if not judged:
            raise PiiBenchError(f"--min {task}.{metric}: no row has this figure")
        for row in judged:
            value = row.metrics[metric]
            if value < minimum.figure:
                yield (
                    f"{row.dataset}, {task}: {metric} is {value:.3f}, "
                    f"below the minimum {minimum.figure:.3f}"
                )
    if baseline is None:
        return
    for row in rows:
        if not _figures(row):
            continue
        pair = _pair(row, baseline)
        comparison = None if pair is None else compare(*pair[1:])
        if pair is None or comparison is None:
            raise PiiBenchError(
                f"the baseline has no row for {row.dataset}, {row.task} with these samples: "
                "`gate --write-baseline` writes one"
            )
        if comparison.difference < 0 and comparison.p < ALPHA:
            yield (
                f"{row.dataset}, {row.task}: {pair[0]} is {comparison.first.figure:.3f}, "
                f"significantly below the baseline's {comparison.second.figure:.3f} "
                f"(p = {comparison.p:.3f})"
            )


def partly_compared(rows: Sequence[Row], baseline: Baseline) -> Iterator[str]:
    """Yield a line for each row of which the baseline has some samples only."""
    for row in rows:
        pair = _pair(row, baseline)
        if pair is None:
            continue
        _, ours, theirs = pair
        common, every = len(set(ours.ids) & set(theirs.ids)), len(ours.ids)
        if common < every:
            share = f"{common} of {every} samples"
            yield f"{row.dataset}, {row.task}: {share} are compared, the baseline lacks the others"


def _pair(row: Row, baseline: Baseline) -> tuple[str, Scores, Scores] | None:
    """Return the first column that a row and the baseline both have, and the scores of both."""
    theirs = baseline.get((row.dataset, row.task), {})
    for column, ours in _figures(row).items():
        if column in theirs:
            return column, ours, theirs[column]
    return None


def _figures(row: Row) -> dict[str, Scores]:
    """Return the figures to compare: the headline, and Ent-F1 in case one side has none."""
    columns = (row.headline_name, "ent_f1")
    return {column: row.by_sample[column] for column in columns if column in row.by_sample}


def write_baseline(path: Path, rows: Sequence[Row]) -> None:
    """Write the headlines and Ent-F1 of rows by sample, as the baseline of later gates.

    Raises:
        PiiBenchError: no row has one of them.
        ResultsError: the file cannot be written.
    """
    records = [
        {"dataset": row.dataset, "task": row.task, "figure": column, "scores": asdict(scores)}
        for row in rows
        for column, scores in _figures(row).items()
    ]
    if not records:
        raise PiiBenchError(f"{path}: no row has a figure that a baseline could hold")
    write_whole(path, json.dumps(records) + "\n")


def read_baseline(path: Path) -> Baseline:
    """Read a baseline; records without `figure`, as written before there was one, are headlines.

    Raises:
        InputFileError: the file cannot be read, or is not a baseline.
    """
    try:
        records: list[Mapping[str, Any]] = json.loads(path.read_bytes())
        baseline: Baseline = {}
        for record in records:
            task = Task(record["task"])
            figures = baseline.setdefault((record["dataset"], task), {})
            figures[record.get("figure", HEADLINE_NAMES[task])] = _scores(record["scores"])
    except OSError as error:
        raise InputFileError(path, error.strerror or "cannot be read") from error
    except (ValueError, KeyError, TypeError) as error:
        raise InputFileError(
            path, "is not a baseline; `gate --write-baseline` writes one"
        ) from error
    return baseline


def _scores(record: Mapping[str, Any]) -> Scores:
    parts = record["parts"]
    return Scores(
        tuple(record["ids"]),
        tuple(record["clusters"]),
        tuple(record["values"]),
        None if parts is None else (tuple(parts[0]), tuple(parts[1])),
    )
