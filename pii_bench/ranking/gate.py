"""Whether rows are good enough: least figures, and no worse than a baseline."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from pii_bench.errors import InputFileError, PiiBenchError, UnknownNameError
from pii_bench.files import write_whole
from pii_bench.ranking.rows import METRICS
from pii_bench.ranking.scores import Scores
from pii_bench.ranking.significance import compare
from pii_bench.tasks import Task

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from pii_bench.ranking.rows import Row

SIGNIFICANT: Final = 0.05
"""A difference from the baseline counts from this p down."""

Baseline = dict[tuple[str, str], Scores]
"""(dataset, task) to the headline, sample by sample."""


@dataclass(frozen=True, slots=True)
class Least:
    """A figure that rows of a task must reach."""

    task: Task
    metric: str
    figure: float

    @classmethod
    def parse(cls, text: str) -> Least:
        """Read `masking.h=0.7`.

        Raises:
            UnknownNameError: no such task or metric.
            PiiBenchError: it is not of that form.
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


def shortfalls(rows: Sequence[Row], least: Sequence[Least], baseline: Baseline) -> Iterator[str]:
    """What rows fall short of, a line each.

    A row falls short of the baseline where its headline is lower and a paired permutation test of
    the samples in common says p < 0.05.

    Raises:
        PiiBenchError: no row has a figure that is asked for.
    """
    for each in least:
        found = [row for row in rows if row.task is each.task and each.metric in row.metrics]
        if not found:
            raise PiiBenchError(f"--min {each.task}.{each.metric}: no row has this figure")
        for row in found:
            value = row.metrics[each.metric]
            if value < each.figure:
                yield (
                    f"{row.dataset}, {row.task}: {each.metric} is {value:.3f}, "
                    f"at least {each.figure:.3f} is asked for"
                )
    for row in rows:
        ours, theirs = row.by_sample.get(row.headline_name), baseline.get((row.dataset, row.task))
        comparison = compare(ours, theirs) if ours is not None and theirs is not None else None
        if comparison and comparison.difference < 0 and comparison.p < SIGNIFICANT:
            yield (
                f"{row.dataset}, {row.task}: {row.headline_name} is {comparison.first.figure:.3f}, "
                f"the baseline's {comparison.second.figure:.3f} (p {comparison.p:.3f})"
            )


def write_baseline(path: Path, rows: Sequence[Row]) -> None:
    """Keep the headlines of rows, sample by sample, for later gates.

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
    """Read what `write_baseline` wrote.

    Raises:
        InputFileError: the file cannot be read, or is no such file.
    """
    try:
        records: list[Mapping[str, Any]] = json.loads(path.read_bytes())
        return {(each["dataset"], each["task"]): _scores(each["scores"]) for each in records}
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
