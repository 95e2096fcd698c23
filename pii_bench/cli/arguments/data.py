"""The arguments of the commands that build, check and learn from data."""

from __future__ import annotations

from pathlib import Path

from pii_bench.cli.arguments.shared import (
    Subparsers,
    add_calls,
    add_data_folder,
    add_dataset,
    positive,
)


def add_train(subparsers: Subparsers) -> None:
    """The tagger that ships."""
    parser = subparsers.add_parser(
        "train",
        help="train the BiLSTM-CRF that ships",
        description="Train the BiLSTM-CRF on the sets to train and tune on, which `data build` "
        "makes, and write its weights, vocabulary and training log.",
    )
    add_data_folder(parser, ", train and dev in its folder built")
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="where the weights go (default: data/models/bilstm-crf, or bilstm-crf-words)",
    )
    parser.add_argument(
        "--words-alone",
        action="store_true",
        help="see a token's word, and not how it is written: bilstm-crf-words",
    )
    parser.set_defaults(command="train")


def add_fit(subparsers: Subparsers) -> None:
    """The thresholds of relevance systems."""
    parser = subparsers.add_parser(
        "fit",
        help="fit the thresholds of the relevance systems",
        description="Fit the thresholds of relevance systems on the dev sets that `data build` "
        "makes, and write them beside the hashes of those sets.",
    )
    parser.add_argument(
        "systems",
        nargs="*",
        metavar="SYSTEM",
        help="random, keyword, embedding, embedding-minilm (default: all but the last)",
    )
    add_data_folder(parser, ", dev in its folder built")
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("data/models/relevance/thresholds.json"),
        metavar="FILE",
        help="where the thresholds go (default: %(default)s)",
    )
    parser.set_defaults(command="fit")


def add_data(subparsers: Subparsers) -> None:
    """Dataset files."""
    parser = subparsers.add_parser(
        "data", help="work on dataset files: build, check, stats, quality"
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_data_build(commands)
    _add_data_check(commands)
    _add_data_stats(commands)
    _add_data_quality(commands)


def _add_data_build(commands: Subparsers) -> None:
    parser = commands.add_parser(
        "build",
        help="build our datasets from the grammar",
        description="Build single, multi, hard, distract and twins, and into the folder `built` "
        "the sets to train and tune on: the same bytes on any machine.",
    )
    add_data_folder(parser, " and their cards")
    parser.add_argument(
        "--writer",
        metavar="MODEL",
        help="let a chat model write instead of the grammar, into DIR/built (see run --model)",
    )
    parser.add_argument(
        "--set", choices=("single", "multi"), default="single", help="with --writer (%(default)s)"
    )
    parser.add_argument(
        "--limit", type=positive, default=20, metavar="N", help="with --writer (%(default)s)"
    )
    add_calls(parser)
    parser.set_defaults(command="data build")


def _add_data_check(commands: Subparsers) -> None:
    parser = commands.add_parser(
        "check",
        help="find faults in dataset files",
        description="Find faults in dataset files, ours or others in our format: annotations, "
        "formats, leaks, queries, consistency, duplicates. What is found is shown with the "
        "texts in question. Exit code 2 when there is any.",
    )
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE", help="JSON Lines")
    parser.set_defaults(command="data check")


def _add_data_stats(commands: Subparsers) -> None:
    parser = commands.add_parser(
        "stats",
        help="show the statistics of datasets beside the paper's",
        description="Show the statistics of datasets, and beside them those of the paper's sets "
        "of the same names.",
    )
    add_dataset(parser)
    parser.add_argument("--write", action="store_true", help="put them into data/README.md too")
    parser.set_defaults(command="data stats")


def _add_data_quality(commands: Subparsers) -> None:
    parser = commands.add_parser(
        "quality",
        help="measure how alike texts are and how far shortcuts get",
        description="Measure single and multi: how alike their texts are, and how far systems "
        "get that understand nothing. Needs train and dev, which `data build` makes. The "
        "figures go into README.md beside the sets too.",
    )
    add_data_folder(parser, ", train and dev in its folder built")
    parser.set_defaults(command="data quality")
