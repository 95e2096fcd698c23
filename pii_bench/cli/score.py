"""`pii-bench score` and `pii-bench convert`."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from pii_bench.cli.tables import print_faults, print_rows
from pii_bench.cli.terminal import say, tell
from pii_bench.datasets.catalog import load_dataset
from pii_bench.errors import PiiBenchError
from pii_bench.evaluation import evaluate
from pii_bench.leaderboard.rows import row_of, with_intervals
from pii_bench.leaderboard.source import Source
from pii_bench.predictions.capid_outputs import read_capid_outputs
from pii_bench.predictions.file import (
    names_types,
    predicted_tasks,
    read_predictions,
    write_predictions,
)
from pii_bench.signature import Signature
from pii_bench.statistics.scores import clusters_of

if TYPE_CHECKING:
    from pathlib import Path


def score_predictions(path: Path, source: str) -> bool:
    """Score a file of predictions and print a row per task that it answers.

    Returns:
        Whether every sample could be scored.

    Raises:
        PiiBenchError: the dataset or the predictions are broken.
    """
    dataset = load_dataset(source)
    print_faults(dataset)
    predictions = read_predictions(path, [sample.id for sample in dataset.samples])
    tasks = predicted_tasks(predictions)
    if not tasks:
        raise PiiBenchError(f"{path}: no line has an answer; nothing to score")
    clusters = clusters_of(dataset.samples)
    typed = names_types(predictions)
    rows = []
    for task in tasks:
        evaluation = evaluate(task, dataset.samples, predictions)
        signature = Signature(dataset.name, dataset.sha256, task, model=path.stem)
        rows.append(
            row_of(
                evaluation,
                signature,
                clusters,
                source=Source.RUN,
                oracle=False,
                names_types=typed,
            )
        )
    print_rows(with_intervals(rows))
    return all(row.complete for row in rows)


def convert_answers(answers: Path, source: str, out: Path) -> bool:
    """Write CAPID's stored answers as a predictions file.

    Returns:
        Whether every answer found its sample and every sample its answer.

    Raises:
        PiiBenchError: the dataset or the answers are broken.
    """
    dataset = load_dataset(source)
    print_faults(dataset)
    converted = read_capid_outputs(answers, dataset.samples)
    write_predictions(out, converted.predictions)
    statuses = Counter(prediction.status for prediction in converted.predictions.values())
    listed = ", ".join(f"{status} {count}" for status, count in statuses.most_common())
    say(f"{out}: {len(converted.predictions)} predictions ({listed})")
    if converted.strangers:
        lines = ", ".join(map(str, converted.strangers))
        tell(f"answers to no sample of the dataset, on lines {lines}")
    if converted.unanswered:
        names = ", ".join(converted.unanswered)
        tell(f"samples without an answer, as infra_error: {names}")
    return not (converted.strangers or converted.unanswered)
