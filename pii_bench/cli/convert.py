"""`pii-bench convert`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from pii_bench.cli.options import DATASET_HELP
from pii_bench.cli.terminal import echo, log, log_faults
from pii_bench.datasets.catalog import load_dataset
from pii_bench.files import write_whole
from pii_bench.runs.capid_outputs import read_capid_outputs
from pii_bench.systems.predictions import to_text

if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command and its arguments."""
    parser.description = "Convert answers in another project's format into a predictions file."
    parser.add_argument("format", choices=("capid-outputs",), help="format of the answers")
    parser.add_argument("answers", type=Path, help="file of the answers")
    parser.add_argument("--dataset", required=True, help=DATASET_HELP)
    parser.add_argument("--out", type=Path, required=True, help="the predictions file to write")


def run(arguments: argparse.Namespace) -> bool:
    """Write CAPID's stored answers as predictions; True if answers and samples all match."""
    dataset = load_dataset(arguments.dataset)
    log_faults(dataset)
    converted = read_capid_outputs(arguments.answers, dataset.samples)
    write_whole(arguments.out, to_text(converted.predictions))
    statuses = Counter(prediction.status for prediction in converted.predictions.values())
    listed = ", ".join(f"{status} {count}" for status, count in statuses.most_common())
    echo(f"{arguments.out}: {len(converted.predictions)} predictions ({listed})")
    if converted.strangers:
        lines = ", ".join(map(str, converted.strangers))
        log(f"answers that belong to no sample of the dataset, on lines {lines}")
    if converted.unanswered:
        names = ", ".join(converted.unanswered)
        log(f"samples without an answer, written as infra_error: {names}")
    return not (converted.strangers or converted.unanswered)
