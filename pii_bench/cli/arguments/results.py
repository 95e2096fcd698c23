"""The arguments of the commands that work on predictions and results."""

from __future__ import annotations

from pathlib import Path

from pii_bench.cli.arguments.shared import (
    DATASET_HELP,
    Subparsers,
    add_dataset,
    add_results,
    add_task,
    positive,
)


def add_score(subparsers: Subparsers) -> None:
    """Predictions made anywhere."""
    parser = subparsers.add_parser("score", help="score a file of predictions made anywhere")
    parser.add_argument("predictions", type=Path, help="JSON Lines, see the README")
    parser.add_argument("--dataset", required=True, help=DATASET_HELP)
    parser.add_argument(
        "--name",
        help="keep them under this name in DIR/submitted: they enter the leaderboard, compare, "
        "analyse, diagnose and report",
    )
    parser.add_argument("--force", action="store_true", help="replace what is kept under the name")
    add_results(parser)
    parser.set_defaults(command="score")


def add_leaderboard(subparsers: Subparsers) -> None:
    """The leaderboard of stored runs."""
    parser = subparsers.add_parser(
        "leaderboard", help="write leaderboard.csv and leaderboard.md from the results"
    )
    parser.add_argument(
        "--table",
        type=positive,
        metavar="N",
        help="print ours in the layout of table N of the paper, with the differences",
    )
    add_results(parser)
    parser.set_defaults(command="leaderboard")


def add_convert(subparsers: Subparsers) -> None:
    """Other people's answers."""
    parser = subparsers.add_parser(
        "convert", help="turn answers in another project's format into a predictions file"
    )
    parser.add_argument("format", choices=("capid-outputs",))
    parser.add_argument("answers", type=Path)
    parser.add_argument("--dataset", required=True, help=DATASET_HELP)
    parser.add_argument("--out", type=Path, required=True, help="the predictions file to write")
    parser.set_defaults(command="convert")


def add_compare(subparsers: Subparsers) -> None:
    """Two systems against each other."""
    parser = subparsers.add_parser(
        "compare",
        help="compare two systems on their stored runs",
        description="Compare two systems on the samples that both answered: the difference, its "
        "95 % interval, p by a paired permutation test with Holm's correction over the lines "
        "printed, and the samples where they differ most.",
    )
    for name in ("first", "second"):
        parser.add_argument(
            name,
            metavar="SYSTEM",
            help="MODEL+STRATEGY, MODEL:STRATEGY or MODEL, as in the leaderboard; run:, reference: "
            "or submitted: before it names the source",
        )
    add_dataset(parser)
    add_task(parser)
    parser.add_argument(
        "--samples",
        type=positive,
        default=5,
        metavar="N",
        help="of each line, show the N samples that differ most (default: %(default)s)",
    )
    add_results(parser)
    parser.set_defaults(command="compare")


def add_analyse(subparsers: Subparsers) -> None:
    """What the paper analyses."""
    parser = subparsers.add_parser(
        "analyse",
        help="analyse stored runs: curves, types, drops, agreement of datasets",
        description="Analyse stored runs as the paper does: F1 by size, recall by type and "
        "category, drops on hard and distract, agreement of datasets. Writes CSV files and "
        "figures into DIR/analysis.",
    )
    add_results(parser)
    parser.set_defaults(command="analyse")


def add_diagnose(subparsers: Subparsers) -> None:
    """What kinds of error there are."""
    parser = subparsers.add_parser(
        "diagnose",
        help="say what kinds of error stored runs make, and what leaks",
        description="Sort the errors of stored runs into classes, weigh leak against "
        "over-masking, and tell how systems react to twins. Writes CSV files into DIR/diagnosis.",
    )
    add_results(parser)
    parser.set_defaults(command="diagnose")


def add_export(subparsers: Subparsers) -> None:
    """Stored runs in the formats of others."""
    parser = subparsers.add_parser("export", help="write stored runs in a format of others")
    formats = parser.add_subparsers(required=True, metavar="FORMAT")
    every = formats.add_parser(
        "every-eval-ever",
        help="Every Eval Ever 0.3.0: a JSON file per run and one line per sample",
        description="Write stored runs in the format of Every Eval Ever 0.3.0. Texts are those of "
        "our own datasets only.",
    )
    every.add_argument("--out", type=Path, required=True, metavar="DIR", help="where to write")
    every.add_argument(
        "--organization", default="unknown", help="who evaluated (default: %(default)s)"
    )
    every.add_argument(
        "--relationship",
        choices=("first_party", "third_party", "collaborative", "other"),
        default="other",
        help="of who evaluated to who made the model (default: %(default)s)",
    )
    add_results(every)
    every.set_defaults(command="export every-eval-ever")


def add_report(subparsers: Subparsers) -> None:
    """One page to look at."""
    parser = subparsers.add_parser(
        "report",
        help="write the leaderboard and every sample as one HTML file",
        description="Write one HTML file that loads nothing: tables, figures, and every sample "
        "with gold and predicted entities marked, two runs side by side. Texts are those of our "
        "own datasets, unless said otherwise.",
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="default: DIR/report.html")
    add_dataset(parser)
    parser.add_argument(
        "--model",
        nargs="+",
        metavar="SYSTEM",
        help="samples of these only, named as in `compare`; tables stay whole",
    )
    texts = parser.add_mutually_exclusive_group()
    texts.add_argument(
        "--texts",
        dest="texts",
        action="store_const",
        const="all",
        default="ours",
        help="put in the texts of datasets that are not ours too",
    )
    texts.add_argument(
        "--no-texts",
        dest="texts",
        action="store_const",
        const="none",
        help="leave out all texts",
    )
    add_results(parser)
    parser.set_defaults(command="report")
