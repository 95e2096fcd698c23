"""`pii-bench data check`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pii_bench.cli.terminal import echo, log_progress
from pii_bench.datasets.check.run import check_files
from pii_bench.errors import CheckFailedError

if TYPE_CHECKING:
    import argparse


DESCRIPTION: Final = (
    "Find faults in dataset files, ours or others in our format: annotations, formats, leaks, "
    "queries, consistency, duplicates. What is found is shown with the texts in question, and "
    "said is what was left out since it would take too long. "
    "Exit code 2 when there is any."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE", help="JSON Lines")


def run(arguments: argparse.Namespace) -> bool:
    """Check dataset files; print each problem, and how many there are of each rule.

    Raises:
        CheckFailedError: there is one.
        InputFileError: a file cannot be read.
    """
    report = check_files(
        arguments.files, lambda samples: log_progress(samples, "samples checked", of=len(samples))
    )
    found = [(path, problem) for path, own in report.problems.items() for problem in own]
    for path, problem in found:
        echo(f"{path}: {problem.sample_id}: {problem.rule}: {problem.reason}")
    for line in report.left_out:
        echo(line)
    if not found:
        echo(f"no problems in {report.samples} samples")
        return True
    echo()
    for rule, count in Counter(problem.rule for _, problem in found).most_common():
        echo(f"{rule}: {count}")
    faulty = {(path, problem.sample_id) for path, problem in found}
    raise CheckFailedError(len(found), len(faulty))
