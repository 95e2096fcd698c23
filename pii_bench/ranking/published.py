"""The paper's figures as rows."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING, Final

from pii_bench.errors import InputFileError
from pii_bench.prompting.strategies import DETECTION, STRATEGIES
from pii_bench.ranking.rows import METRICS, Row
from pii_bench.ranking.source import Source
from pii_bench.resources import DATA
from pii_bench.tasks import Task

if TYPE_CHECKING:
    from pathlib import Path

PUBLISHED: Final = DATA / "published" / "paper_results.csv"

_TASKS: Final = {
    "detection": Task.DETECTION,
    "query_related": Task.QUERY_RELATED,
    "masking": Task.MASKING,
}


def published_rows(path: Path = PUBLISHED) -> list[Row]:
    """Rows of every published figure of the three tasks, one per table, model and strategy.

    Detection has one prompt for all strategies, so its rows carry its name. The figures on
    privacy and utility are of another task and stay in the file.

    Raises:
        InputFileError: absent, or a figure that is no number between 0 and 1.
    """
    metrics: dict[tuple[Task, str, str, str, str], dict[str, float]] = {}
    notes: dict[tuple[Task, str, str, str, str], set[str]] = {}
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            for record in reader:
                if record["task"] not in _TASKS:
                    continue
                task = _TASKS[record["task"]]
                strategy = DETECTION.name if task is Task.DETECTION else record["strategy"]
                key = (task, record["dataset"], record["model"], strategy, record["table"])
                metric, value = record["metric"], float(record["value"])
                if metric not in METRICS or not 0 <= value <= 1:
                    raise ValueError(f"{metric} = {value}")
                metrics.setdefault(key, {})[metric] = value
                if record["note"]:
                    notes.setdefault(key, set()).add(f"{metric}: {record['note']}")
    except (OSError, KeyError, ValueError) as error:
        raise InputFileError(path, f"no table of published figures: {error}") from error
    return [
        Row(
            source=Source.PUBLISHED,
            model=model,
            strategy=strategy,
            dataset=dataset,
            task=task,
            oracle=strategy in STRATEGIES and STRATEGIES[strategy].oracle,
            metrics=values,
            note="; ".join([f"paper, table {table}", *sorted(notes.get(key, ()))]),
        )
        for key, values in metrics.items()
        for task, dataset, model, strategy, table in (key,)
    ]
