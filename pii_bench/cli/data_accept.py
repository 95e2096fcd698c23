"""`pii-bench data accept`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from pii_bench.cli.terminal import echo
from pii_bench.construction.accept import accept
from pii_bench.construction.marked import read_marked

if TYPE_CHECKING:
    import argparse


DESCRIPTION: Final = (
    "Judge written texts against their commissions, by the checker, and against what is "
    "recorded; record those without a problem in data/texts. Exit code 1 when any is refused."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE")


def run(arguments: argparse.Namespace) -> bool:
    """Record what was written where it is sound; print what is wrong with the rest.

    Returns:
        Whether every sample was recorded.

    Raises:
        PiiBenchError: a file cannot be read, or a text cannot be recorded.
    """
    verdicts = accept([marked for path in arguments.files for marked in read_marked(path)])
    for verdict in verdicts:
        for problem in verdict.problems:
            echo(f"{verdict.id}: {problem.rule}: {problem.reason}")
        if not verdict.problems:
            echo(f"{verdict.id}: recorded ({verdict.chars} characters, {verdict.wanted} wanted)")
    kept = sum(not verdict.problems for verdict in verdicts)
    echo(f"recorded {kept} of {len(verdicts)}")
    return kept == len(verdicts)
