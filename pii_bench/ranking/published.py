"""Rows to compare with: the paper's figures, and the blind readers of our sets."""

from __future__ import annotations

import csv
from statistics import fmean
from typing import TYPE_CHECKING, Final

from pii_bench.datasets.catalog import DATASETS
from pii_bench.datasets.readings import READINGS, load_readings
from pii_bench.errors import InputFileError
from pii_bench.files import DATA
from pii_bench.prompting.strategies import DETECTION, STRATEGIES
from pii_bench.ranking.rows import METRICS, Row, Source
from pii_bench.ranking.scores import Scores
from pii_bench.scorer import macro, score_query_related
from pii_bench.tasks import Task

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pii_bench.scorer import PRF

PUBLISHED: Final = DATA / "published" / "paper_results.csv"

_TASKS: Final = {
    "detection": Task.DETECTION,
    "query_related": Task.QUERY_RELATED,
    "masking": Task.MASKING,
}

READERS: Final = "readers"
_STRATEGY: Final = "blind"


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


def reading_rows(datasets: Iterable[str], folder: Path = READINGS) -> list[Row]:
    """A row for each dataset of ours that was read: F1 of readers against gold, on first readings.

    The gold is that of the version that was read, before anything was mended. A sample has the
    mean over its readings.

    Raises:
        InputFileError: a file of readings is broken.
    """
    rows = []
    for dataset in sorted(DATASETS.keys() & set(datasets)):
        by_sample: dict[str, list[PRF]] = {}
        for reading in load_readings(dataset, folder):
            if reading.round == 1:
                score = score_query_related(reading.needed, reading.gold).exact
                by_sample.setdefault(reading.id, []).append(score)
        if by_sample:
            rows.append(_row(dataset, by_sample))
    return rows


def _row(dataset: str, by_sample: dict[str, list[PRF]]) -> Row:
    mean = macro([score for scores in by_sample.values() for score in scores])
    ids = tuple(by_sample)
    f1 = Scores(ids, ids, tuple(fmean(s.f1 for s in own) for own in by_sample.values()))
    count = sum(map(len, by_sample.values()))
    return Row(
        source=Source.READING,
        model=READERS,
        strategy=_STRATEGY,
        dataset=dataset,
        task=Task.QUERY_RELATED,
        oracle=False,
        metrics=(
            {"f1": mean.f1, "precision": mean.precision, "recall": mean.recall} if mean else {}
        ),
        scored=len(ids),
        gold=len(ids),
        note=f"a large language model, blind to gold: {count} first readings",
        by_sample={"f1": f1},
    )
