"""`pii-bench spans`."""

from __future__ import annotations

from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tabulate import tabulate

from pii_bench.analysis.spans import COLUMNS, SpanTally, StoredDetector, build_local
from pii_bench.cli.options import DATASET_HELP, add_options, dataset_source
from pii_bench.cli.terminal import echo, echo_json, log, log_progress
from pii_bench.datasets.catalog import load_dataset, open_documents
from pii_bench.datasets.span_files import Misfits
from pii_bench.errors import InputFileError, PiiBenchError
from pii_bench.escaping import csv_text
from pii_bench.files import write_whole
from pii_bench.ranking.stored import read_run
from pii_bench.runs.records import Signature
from pii_bench.tasks import Task
from pii_bench.taxonomy import sha256_of_labels

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from pii_bench.analysis.spans import Row
    from pii_bench.datasets.catalog import DocumentStream
    from pii_bench.systems.detectors import Detector

_SHOWN: Final = (
    *("slice", "gold", "predicted", "precision", "recall", "target_recall", "f1", "macro_f1"),
    *("semeval_partial_f1", "semeval_type_f1", "token_f1", "overlap_recall", "overlap_f1"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command and its arguments."""
    parser.description = (
        "Score the spans that local detectors, or the stored answers of prompts, find, in our "
        "seven types: exact spans, SemEval's four schemas, tokens, overlap without types, and "
        "recall by tier and label. Labels that a taxonomy cannot express are listed and not "
        "scored."
    )
    parser.add_argument(
        "--model",
        nargs="+",
        default=[],
        metavar="DETECTOR",
        help="detectors to score: encoder, spacy, hf:PATH...",
    )
    parser.add_argument(
        "--run",
        dest="manifests",
        nargs="+",
        default=[],
        type=Path,
        metavar="FILE.run.json",
        help="stored detection runs on the dataset, whose values are located in the texts",
    )
    parser.add_argument("--dataset", required=True, help=DATASET_HELP)
    add_options(parser, "--language", "--split", "--label-map")
    parser.add_argument("--out", type=Path, metavar="FILE", help="CSV file for all scores")
    add_options(parser, "--json")


def run(arguments: argparse.Namespace) -> bool:
    """Print the scores of each detector, and write them."""
    source = dataset_source(arguments)
    stream = open_documents(source)
    detectors: list[Detector] = [build_local(name, arguments.label_map) for name in arguments.model]
    detectors += _read_stored(arguments.manifests, source)
    if not detectors:
        raise PiiBenchError("nothing to score: give --model, --run or both")
    rows: list[Row] = []
    misfits = Misfits()
    for detector in detectors:
        # Each detector reads the same files: keep the misfits of the last one.
        misfits = Misfits()
        rows += _score(stream, detector, misfits)
    for message in misfits.messages():
        log(f"{arguments.dataset}: {message}")
    if arguments.json:
        echo_json(rows)
    else:
        for model, group in groupby(rows, key=itemgetter("model")):
            echo(f"\n{model} on {stream.name}\n\n{_table(list(group))}")
    if arguments.out is not None:
        write_whole(arguments.out, csv_text(COLUMNS, [list(row.values()) for row in rows]))
    return True


def _read_stored(paths: Sequence[Path], source: str) -> list[StoredDetector]:
    """Read stored runs on a dataset."""
    if not paths:
        return []
    dataset = load_dataset(source)
    detectors = []
    for path in paths:
        run = read_run(path, dataset)
        own = run.manifest.dataset
        if (own.name, own.sha256) != (dataset.name, dataset.sha256):
            raise InputFileError(path, f"is a run on {own.name}, not on {dataset.name}")
        detectors.append(StoredDetector.of_run(run))
    return detectors


def _score(stream: DocumentStream, detector: Detector, misfits: Misfits) -> list[Row]:
    tally = SpanTally(stream.labels, detector)
    without_answer = 0
    for document in log_progress(stream.read(misfits), f"documents read by {detector.name}"):
        if isinstance(detector, StoredDetector) and document.text not in detector:
            without_answer += 1
        else:
            tally.add(document)
    if isinstance(detector, StoredDetector):
        tally.unscored.update(detector.unplaced)
    if without_answer:
        log(f"{detector.name}: {without_answer} documents have no answer and are left out")
    signature = Signature(
        stream.name,
        stream.sha256,
        Task.DETECTION,
        model=detector.name,
        settings={**detector.identity, "taxonomies": sha256_of_labels()},
    )
    return tally.rows(stream.name, str(signature))


def _table(rows: Sequence[Row]) -> str:
    columns = [column for column in _SHOWN if any(row[column] is not None for row in rows)]
    headers = [column.replace("_", " ") for column in columns]
    cells = [[row[column] for column in columns] for row in rows]
    return tabulate(cells, headers, tablefmt="github", floatfmt=".4f", missingval="")
