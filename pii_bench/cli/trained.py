"""`pii-bench trained`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tabulate import tabulate

from pii_bench.analysis.trained import read_trained
from pii_bench.cli.options import add_options
from pii_bench.cli.terminal import echo, echo_json
from pii_bench.escaping import csv_text
from pii_bench.files import write_whole

if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command and its arguments."""
    parser.description = (
        "Compare encoders that `train encoder` wrote: head, training data, augmentation, dev "
        "scores."
    )
    parser.add_argument("folders", type=Path, nargs="+", metavar="DIR", help="folders of weights")
    parser.add_argument("--out", type=Path, metavar="FILE", help="CSV file for the table")
    add_options(parser, "--json")


def run(arguments: argparse.Namespace) -> bool:
    """Print a row for each folder."""
    rows = [read_trained(folder) for folder in arguments.folders]
    header = list(rows[0])
    if arguments.json:
        echo_json(rows)
    else:
        echo(tabulate([row.values() for row in rows], headers=header, floatfmt=".3f"))
    if arguments.out:
        write_whole(arguments.out, csv_text(header, (row.values() for row in rows)))
    return True
