"""`pii-bench gate`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pii_bench import api
from pii_bench.cli.options import TEMPERATURE_HELP, add_options
from pii_bench.cli.terminal import RunProgress, counted, echo
from pii_bench.errors import PiiBenchError
from pii_bench.ranking.gate import Least, partly_compared, read_baseline, shortfalls, write_baseline
from pii_bench.systems import DEFAULT_SYSTEM
from pii_bench.systems.catalog import SystemOptions

if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command and its arguments."""
    parser.description = (
        "Run a system, and exit with 1 if it scores below the given minimum or significantly below "
        "a baseline. Stored responses are used again. For continuous integration."
    )
    parser.add_argument(
        "--model",
        default=DEFAULT_SYSTEM,
        metavar="SYSTEM",
        help="system (default: %(default)s)",
    )
    parser.add_argument("--strategy", help="a chat model's prompt (default: naive)")
    add_options(parser, "--dataset")
    add_options(parser, "--limit", help="only the first N samples")
    add_options(
        parser,
        "--temperature",
        help=f"{TEMPERATURE_HELP} (of a chat model's answers; default: 0)",
    )
    add_options(parser, "--keep")
    parser.add_argument(
        "--min",
        action="append",
        default=[],
        metavar="TASK.METRIC=FIGURE",
        help="minimum of a score, such as masking.h=0.7; may be given several times",
    )
    parser.add_argument(
        "--baseline",
        type=Path,
        metavar="FILE",
        help="fail if a headline score is lower than in this file, with p < 0.05 in a paired test",
    )
    parser.add_argument(
        "--write-baseline", type=Path, metavar="FILE", help="write the headline scores to this file"
    )
    add_options(parser, "--results")


def run(arguments: argparse.Namespace) -> bool:
    """Run a system, and print too low scores; True if there is none and the run is complete."""
    if not (arguments.min or arguments.baseline or arguments.write_baseline):
        raise PiiBenchError("nothing to check: give --min, --baseline or --write-baseline")
    minimums = [Least.parse(text) for text in arguments.min]
    baseline = read_baseline(arguments.baseline) if arguments.baseline else None
    with RunProgress() as progress:
        rows = api.run(
            arguments.model,
            arguments.dataset,
            limit=arguments.limit,
            results=arguments.results,
            options=SystemOptions(
                strategy=arguments.strategy,
                temperature=arguments.temperature,
                keep=arguments.keep,
            ),
            progress=progress,
        )
    incomplete = [row for row in rows if not row.complete]
    for row in incomplete:
        echo(f"{row.dataset}, {row.task}: {row.scored} of {row.gold} samples are scored; run again")
    failures = list(shortfalls(rows, minimums, baseline))
    for line in (*failures, *partly_compared(rows, baseline or {})):
        echo(line)
    if arguments.write_baseline and not incomplete:
        write_baseline(arguments.write_baseline, rows)
    passed = not failures and not incomplete
    if passed:
        echo(f"passed: {counted(len(rows), 'row')}")
    return passed
