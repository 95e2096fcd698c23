"""`pii-bench export every-eval-ever`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from pii_bench.cli.options import add_options, stored_results
from pii_bench.cli.terminal import echo, log, log_big, log_left_out
from pii_bench.errors import PiiBenchError
from pii_bench.integrations.every_eval_ever import Evaluator, export_runs

if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command and its arguments."""
    parser.description = (
        "Export stored runs in the format of Every Eval Ever 0.3.0: a file for each run, a line "
        "for each sample. Only the texts of our own datasets are included."
    )
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder to write to")
    parser.add_argument(
        "--organization", default="unknown", help="name of the evaluator (default: %(default)s)"
    )
    parser.add_argument(
        "--relationship",
        choices=("first_party", "third_party", "collaborative", "other"),
        default="other",
        help="relationship of the evaluator to the model's maker (default: %(default)s)",
    )
    add_options(parser, "--gzip")
    add_options(parser, "--results", type=stored_results)


def run(arguments: argparse.Namespace) -> bool:
    """Export the runs of a folder; True if all were exported, with scores of all samples."""
    out, compress = arguments.out, arguments.gzip
    exported = export_runs(
        arguments.results,
        out,
        Evaluator(arguments.organization, arguments.relationship),
        created=int(time.time()),
        compress=compress,
        announce=lambda size: log_big(size, out, compressed=compress),
    )
    log_left_out(exported.left_out)
    for path in exported.incomplete:
        log(f"incomplete: {path}")
    if not exported.files and not exported.left_out:
        raise PiiBenchError(f"{arguments.results}: there is no run to export")
    echo(f"{len(exported.files)} runs in {out}")
    return not (exported.incomplete or exported.left_out)
