"""What the commands take. Nothing heavy is imported here: `--help` answers at once."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

import pii_bench
from pii_bench.cli.arguments.data import add_data, add_fit, add_train
from pii_bench.cli.arguments.mask import add_mask
from pii_bench.cli.arguments.results import (
    add_analyse,
    add_compare,
    add_convert,
    add_diagnose,
    add_export,
    add_leaderboard,
    add_report,
    add_score,
)
from pii_bench.cli.arguments.run import add_models, add_run
from pii_bench.cli.arguments.utility import add_utility

if TYPE_CHECKING:
    from collections.abc import Sequence


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Parse; `command` is the name of the command.

    Raises:
        SystemExit: with code 2 for arguments that are wrong, 0 for help and version.
    """
    parser = argparse.ArgumentParser(
        prog="pii-bench",
        description="Benchmark of query-aware PII masking.",
        epilog="Exit codes: 0 done; 1 incomplete, run again; 2 wrong arguments or input.",
    )
    parser.add_argument("--version", action="version", version=pii_bench.__version__)
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND")
    for add in (
        add_run,
        add_models,
        add_mask,
        add_score,
        add_convert,
        add_leaderboard,
        add_compare,
        add_analyse,
        add_diagnose,
        add_report,
        add_utility,
        add_export,
        add_train,
        add_fit,
        add_data,
    ):
        add(subparsers)
    return parser.parse_args(arguments)
