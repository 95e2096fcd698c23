"""The arguments of the commands that build, check and learn from data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pii_bench.cli.arguments.shared import (
    Subparsers,
    add_calls,
    add_data_folder,
    add_dataset,
    positive,
    usd,
)

if TYPE_CHECKING:
    import argparse

ENCODER_HEADS = ("linear", "crf", "charcnn-crf")
WRITTEN_SETS = (
    *("single", "multi", "train-single", "train-multi", "dev-single", "dev-multi"),
    *("twins", "distract"),
)


def add_train(subparsers: Subparsers) -> None:
    """The networks of ours."""
    parser = subparsers.add_parser(
        "train",
        help="train the BiLSTM-CRF that ships, or fine-tune an encoder",
        description="Train the BiLSTM-CRF on the sets to train and tune on, which `data build` "
        "makes; or fine-tune an encoder for detection, relevance and owners at once.",
    )
    parser.add_argument(
        "network", nargs="?", choices=("bilstm-crf", "encoder"), default="bilstm-crf"
    )
    add_data_folder(parser, ", train and dev in its folder built")
    parser.add_argument("--out", type=Path, metavar="DIR", help="where the weights go")
    parser.add_argument(
        "--words-alone",
        action="store_true",
        help="bilstm-crf: see a token's word, and not how it is written",
    )
    encoder = parser.add_argument_group("encoder")
    encoder.add_argument(
        "--checkpoint",
        type=Path,
        metavar="DIR",
        help="a pretrained encoder with its tokenizer.json: BERT, DistilBERT, RoBERTa, ...",
    )
    encoder.add_argument("--head", choices=ENCODER_HEADS, default="linear", help="(%(default)s)")
    encoder.add_argument("--frozen", action="store_true", help="train the heads alone")
    encoder.add_argument("--epochs", type=positive, default=5, metavar="N", help="(%(default)s)")
    for part, what in (("train", "learn from"), ("dev", "choose the epoch by")):
        encoder.add_argument(
            f"--{part}",
            action="extend",
            nargs="+",
            metavar="DATASET",
            help=f"datasets to {what}, as `run --dataset` takes them (default: ours)",
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
    _add_data_commission(commands)
    _add_data_accept(commands)
    _add_data_sheet(commands)
    _add_data_read(commands)
    _add_data_agreement(commands)
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
        help="let a chat model write texts from the commissions, into DIR/built (see run --model)",
    )
    parser.add_argument(
        "--set", choices=WRITTEN_SETS, default="single", help="with --writer (%(default)s)"
    )
    parser.add_argument(
        "--limit", type=positive, default=20, metavar="N", help="with --writer (%(default)s)"
    )
    parser.add_argument(
        "--max-usd",
        type=usd,
        metavar="USD",
        help="with --writer: make no call that might pass this sum",
    )
    add_calls(parser)
    parser.set_defaults(command="data build")


def _add_data_commission(commands: Subparsers) -> None:
    parser = commands.add_parser(
        "commission",
        help="say what a writer is to write",
        description="Write commissions, a file for each portion of twelve: people, facts and "
        "values, voice, length, and what is to be asked.",
    )
    parser.add_argument("set", choices=WRITTEN_SETS)
    parser.add_argument("portions", type=positive, nargs="+", metavar="PORTION", help="from 1")
    parser.add_argument(
        "--out", type=Path, default=Path("build/commissions"), metavar="DIR", help="(%(default)s)"
    )
    parser.set_defaults(command="data commission")


def _add_data_accept(commands: Subparsers) -> None:
    parser = commands.add_parser(
        "accept",
        help="record written texts where they are sound",
        description="Judge written texts against their commissions, by the checker, and against "
        "what is recorded; record those without a problem in data/texts. Exit code 1 when any is "
        "refused.",
    )
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE")
    parser.set_defaults(command="data accept")


def _add_data_sheet(commands: Subparsers) -> None:
    parser = commands.add_parser(
        "sheet",
        help="say what a blind reader is to read",
        description="Write a reader's sheet: texts, queries and entities in random order, "
        "without types and gold, of samples whose recorded version this reader has not read.",
    )
    parser.add_argument("set", choices=WRITTEN_SETS)
    parser.add_argument("portions", type=positive, nargs="+", metavar="PORTION", help="from 1")
    _add_reader(parser)
    parser.add_argument("--out", type=Path, required=True, metavar="FILE")
    parser.set_defaults(command="data sheet")


def _add_data_read(commands: Subparsers) -> None:
    parser = commands.add_parser(
        "read",
        help="record a reader's answers",
        description="Record a reader's answers in data/readings: a line for each sample, "
        "`ID | 2, 5 | what is unlisted | yes or no: ambiguous | text 1-5 | query 1-5 | remark`.",
    )
    parser.add_argument("set", choices=WRITTEN_SETS)
    parser.add_argument("answers", type=Path, metavar="FILE")
    _add_reader(parser)
    parser.set_defaults(command="data read")


def _add_reader(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--reader", choices=("a", "b"), required=True)


def _add_data_agreement(commands: Subparsers) -> None:
    parser = commands.add_parser(
        "agreement",
        help="show how blind readers agree with gold and each other",
        description="Show, from the first readings, F1 and kappa of readers against gold and "
        "each other, what they found ambiguous or unlisted, and how natural: by set, kind of "
        "text and way of reference.",
    )
    parser.add_argument("sets", choices=WRITTEN_SETS, nargs="+", metavar="SET")
    parser.add_argument(
        "--disputed", action="store_true", help="list what keeps recorded samples from passing"
    )
    parser.set_defaults(command="data agreement")


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
        help="measure how alike texts are and how far trivial systems get",
        description="Measure single and multi: how alike their texts are, and how far systems "
        "get that understand nothing. The figures go into README.md beside the sets too.",
    )
    add_data_folder(parser, "")
    parser.add_argument(
        "--beside",
        metavar="DATASET",
        help="print the most frequent words beside those of a dataset, such as capid:PATH",
    )
    parser.set_defaults(command="data quality")
