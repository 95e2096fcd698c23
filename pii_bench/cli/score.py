"""`pii-bench score`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pii_bench.cli.options import DATASET_HELP, add_options
from pii_bench.cli.terminal import (
    echo_rows,
    log,
    log_faults,
    log_progress,
    report,
    update_leaderboard,
)
from pii_bench.datasets.catalog import load_dataset, open_dataset
from pii_bench.errors import PiiBenchError
from pii_bench.ranking.external import check_name, keep_submission
from pii_bench.ranking.rows import Source, row_of, with_intervals
from pii_bench.ranking.scores import cluster_of
from pii_bench.runs.evaluation import CompactScores, Tally
from pii_bench.runs.records import Signature
from pii_bench.systems.predictions import (
    Prediction,
    PredictionsFile,
    names_types,
    unknown_types,
)
from pii_bench.tasks import Status
from pii_bench.taxonomy import PiiType

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from pii_bench.datasets.catalog import DatasetStream


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command and its arguments."""
    parser.description = "Score a file of predictions that any system made."
    parser.add_argument("predictions", type=Path, help="a JSON Lines file (docs/extending.md)")
    parser.add_argument("--dataset", required=True, help=DATASET_HELP)
    parser.add_argument(
        "--name",
        help="keep the predictions under this name in DIR/submitted, for leaderboard, compare, "
        "analyse, diagnose and report",
    )
    parser.add_argument(
        "--force", action="store_true", help="replace the predictions kept under --name"
    )
    parser.add_argument(
        "--partial",
        action="store_true",
        help="score the samples that the file contains, even if others are missing",
    )
    add_options(parser, "--json", "--results")


def run(arguments: argparse.Namespace) -> bool:
    """Score a file of predictions, and print a row for each task that it answers.

    Without a name both files are read line by line, so that they may be of any size. Return True
    if every sample could be scored.
    """
    if arguments.name is not None:
        check_name(arguments.name)
        return _keep(arguments, arguments.name)
    if arguments.force:
        raise PiiBenchError("--force replaces predictions kept under --name: leave it out")
    dataset = open_dataset(arguments.dataset)
    log_faults(dataset)
    clusters, queried = _read_samples(dataset)
    predictions = _read_predictions(arguments, queried)
    tallies = [Tally(task, CompactScores()) for task in predictions.tasks]
    for sample in log_progress(dataset.read(), "samples scored", of=len(clusters)):
        prediction = predictions.get(sample.id)
        for tally in tallies:
            tally.add(sample, prediction)
    typed = names_types(predictions)
    # Free the index of a million lines, and each tally once it is a row, to keep memory low.
    del predictions, queried
    rows = []
    while tallies:
        tally = tallies.pop(0)
        signature = Signature(
            dataset.name, dataset.sha256, tally.task, model=arguments.predictions.stem
        )
        rows.append(
            row_of(
                tally.evaluation,
                signature,
                clusters,
                source=Source.RUN,
                oracle=False,
                names_subjects=dataset.names_subjects,
                names_types=typed,
            )
        )
    echo_rows(with_intervals(rows), as_json=arguments.json)
    return arguments.partial or all(row.complete for row in rows)


def _read_predictions(
    arguments: argparse.Namespace, queried: Mapping[str, bool]
) -> PredictionsFile:
    """Read the predictions, and log the missing samples and unknown types."""
    path: Path = arguments.predictions
    predictions = PredictionsFile(path, queried)
    if lacking := predictions.require(partial=arguments.partial):
        scored = len(queried) - lacking
        log(f"partial: {scored} of {len(queried)} samples have a prediction and are scored")
    if unknown := unknown_types(predictions):
        listed = ", ".join(f"{name!r} {count}" for name, count in unknown.most_common(5))
        log(
            f"{unknown.total()} entities have types other than {', '.join(PiiType)}: {listed}; "
            "they count as right only if gold has the same type"
        )
    return predictions


def _read_samples(dataset: DatasetStream) -> tuple[Mapping[str, str], Mapping[str, bool]]:
    """Return the cluster of each sample id, and whether the sample has a query."""
    clusters, queried = {}, {}
    first: dict[bytes, str] = {}
    for sample in log_progress(dataset.read(), "samples read"):
        clusters[sample.id] = cluster_of(sample, first)
        queried[sample.id] = sample.query is not None
    return clusters, queried


def _keep(arguments: argparse.Namespace, name: str) -> bool:
    """Keep predictions under a name, and print their rows; True if all could be scored."""
    dataset = load_dataset(arguments.dataset)
    log_faults(dataset)
    queried = {sample.id: sample.query is not None for sample in dataset.samples}
    file = _read_predictions(arguments, queried)
    predictions = {
        sample_id: file.get(sample_id, Prediction(Status.INFRA_ERROR)) for sample_id in queried
    }
    kept = keep_submission(arguments.results, name, dataset, predictions, force=arguments.force)
    report(f"kept: {kept}", as_json=arguments.json)
    rows, _ = update_leaderboard(arguments.results, [dataset], as_json=arguments.json)
    own = [
        row
        for row in rows
        if row.source is Source.SUBMITTED and row.model == name and row.dataset == dataset.name
    ]
    echo_rows(own, as_json=arguments.json)
    return arguments.partial or all(row.complete for row in own)
