"""`pii-bench data accept`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pii_bench.cli.terminal import echo
from pii_bench.construction.accept import accept
from pii_bench.construction.marked import read_marked

if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command and its arguments."""
    parser.description = (
        "Check written texts against their commissions, the rules of `data check` and the recorded "
        "texts. Record those without a problem in data/texts. Exit code 1 if any is refused."
    )
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE", help="written texts")


def run(arguments: argparse.Namespace) -> bool:
    """Record the texts without a problem, and print the problems; True if all were recorded."""
    verdicts = accept([marked for path in arguments.files for marked in read_marked(path)])
    for verdict in verdicts:
        for problem in verdict.problems:
            echo(f"{verdict.id}: {problem.rule}: {problem.reason}")
        if not verdict.problems:
            echo(f"{verdict.id}: recorded ({verdict.chars} characters, {verdict.wanted} wanted)")
    recorded = sum(not verdict.problems for verdict in verdicts)
    echo(f"recorded {recorded} of {len(verdicts)}")
    return recorded == len(verdicts)
