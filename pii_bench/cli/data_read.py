"""`pii-bench data read`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pii_bench.cli.options import add_options
from pii_bench.cli.terminal import echo
from pii_bench.construction.readings import parse_answers, record_readings
from pii_bench.construction.recorded import SIZES, Recorded
from pii_bench.datasets.readings import folder_of, load_readings

if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command and its arguments."""
    parser.description = (
        "Record a reader's answers in data/readings. Each line answers one sample: `ID.VERSION | "
        "numbers of the needed entities | PII that is not listed | ambiguous: yes or no | text 1-5 "
        "| query 1-5 | remark`."
    )
    parser.add_argument("set", choices=list(SIZES))
    parser.add_argument("answers", type=Path, metavar="FILE", help="file of answers")
    add_options(parser, "--reader")


def run(arguments: argparse.Namespace) -> bool:
    """Record a reader's answers."""
    name: str = arguments.set
    samples = {sample.id: sample for sample in Recorded.load().samples(name)}
    folder = folder_of(arguments.reader)
    known = load_readings(name, folder)
    readings = parse_answers(arguments.answers, samples, known, arguments.reader)
    echo(f"recorded {record_readings(name, readings, folder)} of {len(readings)} readings")
    return True
