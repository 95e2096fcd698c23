"""`pii-bench data check`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from pii_bench.cli.terminal import echo, log_progress
from pii_bench.datasets.check.run import check_files
from pii_bench.errors import CheckFailedError

if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command and its arguments."""
    parser.description = (
        "Find faults in dataset files in our format: annotations, formats, leaks, queries, "
        "consistency, duplicates. Prints each problem with the texts it concerns, and the checks "
        "that were left out because they would take too long. Exit code 2 if there is a problem."
    )
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE", help="JSON Lines files")


def run(arguments: argparse.Namespace) -> bool:
    """Check dataset files, and print each problem and the number of problems for each rule."""
    report = check_files(
        arguments.files, lambda samples: log_progress(samples, "samples checked", of=len(samples))
    )
    problems = [(path, problem) for path, of_file in report.problems.items() for problem in of_file]
    for path, problem in problems:
        echo(f"{path}: {problem.sample_id}: {problem.rule}: {problem.reason}")
    if not problems:
        echo(f"no problems in {report.samples} samples")
        return True
    echo()
    for rule, count in Counter(problem.rule for _, problem in problems).most_common():
        echo(f"{rule}: {count}")
    faulty = {(path, problem.sample_id) for path, problem in problems}
    raise CheckFailedError(len(problems), len(faulty))
