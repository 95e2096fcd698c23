"""`pii-bench score`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from pii_bench.cli.options import DATASET_HELP, add_json, add_results
from pii_bench.cli.terminal import (
    echo,
    echo_rows,
    log,
    log_faults,
    log_progress,
    update_leaderboard,
)
from pii_bench.datasets.catalog import load_dataset, open_dataset
from pii_bench.errors import PiiBenchError
from pii_bench.ranking.external import check_name, keep_submission
from pii_bench.ranking.rows import Source, row_of, with_intervals
from pii_bench.ranking.scores import Clusters
from pii_bench.runs.evaluation import CompactScores, Tally
from pii_bench.runs.records import Signature
from pii_bench.systems.predictions import (
    Prediction,
    PredictionsFile,
    names_types,
    predicted_tasks,
    unknown_types,
)
from pii_bench.tasks import Status
from pii_bench.taxonomy import PiiType

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from pii_bench.datasets.catalog import DatasetStream

DESCRIPTION: Final = "Score a file of predictions made anywhere."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("predictions", type=Path, help="JSON Lines, see the README")
    parser.add_argument("--dataset", required=True, help=DATASET_HELP)
    parser.add_argument(
        "--name",
        help="keep them under this name in DIR/submitted: they enter the leaderboard, compare, "
        "analyse, diagnose and report",
    )
    parser.add_argument("--force", action="store_true", help="replace what is kept under the name")
    parser.add_argument(
        "--partial",
        action="store_true",
        help="the file may lack samples: the others are scored, and how many is said",
    )
    add_json(parser)
    add_results(parser)


def run(arguments: argparse.Namespace) -> bool:
    """Score a file of predictions and print a row per task that it answers.

    Without a name both files are read line by line, so that they may be of any size.

    Returns:
        Whether every sample could be scored.

    Raises:
        PiiBenchError: the dataset or the predictions are broken, or the name is taken.
    """
    if arguments.name is not None:
        check_name(arguments.name)
        return _keep(arguments, arguments.name)
    if arguments.force:
        raise PiiBenchError("--force is about what is kept under --name: leave it out")
    dataset = open_dataset(arguments.dataset)
    log_faults(dataset)
    clusters = _clusters(dataset)
    predictions = _read(arguments, clusters)
    tallies = [Tally(task, CompactScores()) for task in predicted_tasks(predictions)]
    for sample in log_progress(dataset.read(), "samples scored", of=len(clusters)):
        prediction = predictions.get(sample.id)
        for tally in tallies:
            tally.add(sample, prediction)
    typed = names_types(predictions)
    # Of a million lines each of these takes memory that the rows need.
    del predictions
    rows = []
    while tallies:
        tally = tallies.pop(0)
        rows.append(
            row_of(
                tally.evaluation,
                Signature(
                    dataset.name, dataset.sha256, tally.task, model=arguments.predictions.stem
                ),
                clusters,
                source=Source.RUN,
                oracle=False,
                names_subjects=dataset.names_subjects,
                names_types=typed,
            )
        )
    echo_rows(with_intervals(rows), as_json=arguments.json)
    return arguments.partial or all(row.complete for row in rows)


def _read(arguments: argparse.Namespace, wanted: Mapping[str, object]) -> PredictionsFile:
    """The predictions; said is which samples they lack, and which types are none of ours."""
    path: Path = arguments.predictions
    predictions = PredictionsFile(path)
    if lacking := predictions.require(wanted, partial=arguments.partial):
        scored = len(wanted) - lacking
        log(f"partial: {scored} of {len(wanted)} samples have a prediction and are scored")
    if unknown := unknown_types(predictions):
        listed = ", ".join(f"{name!r} {count}" for name, count in unknown.most_common(5))
        what = f"entities of types that are none of {', '.join(PiiType)}"
        log(f"{unknown.total()} {what}: {listed}; they are right only where gold has them too")
    if not predicted_tasks(predictions):
        raise PiiBenchError(f"{path}: no line has an answer; nothing to score")
    return predictions


def _clusters(dataset: DatasetStream) -> Mapping[str, str]:
    """Sample id to cluster; what finds the clusters is given up before anything is scored."""
    clusters = Clusters()
    for sample in log_progress(dataset.read(), "samples read"):
        clusters.add(sample)
    return clusters.by_id


def _keep(arguments: argparse.Namespace, name: str) -> bool:
    """Keep predictions under a name, and print their rows; whether all could be scored."""
    dataset = load_dataset(arguments.dataset)
    log_faults(dataset)
    wanted = dict.fromkeys(sample.id for sample in dataset.samples)
    found = _read(arguments, wanted)
    predictions = {each: found.get(each, Prediction(Status.INFRA_ERROR)) for each in wanted}
    kept = keep_submission(arguments.results, name, dataset, predictions, force=arguments.force)
    report = log if arguments.json else echo
    report(f"kept: {kept}")
    rows, _ = update_leaderboard(arguments.results, [dataset], report=report)
    own = (Source.SUBMITTED, name, dataset.name)
    shown = [row for row in rows if (row.source, row.model, row.dataset) == own]
    echo_rows(shown, as_json=arguments.json)
    return arguments.partial or all(row.complete for row in shown)
