"""`pii-bench export every-eval-ever`."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pii_bench.cli.options import add_gzip, add_results
from pii_bench.cli.terminal import echo, log, log_big, log_left_out
from pii_bench.errors import PiiBenchError
from pii_bench.integrations.every_eval_ever import Evaluator, export_runs

if TYPE_CHECKING:
    import argparse


DESCRIPTION: Final = (
    "Write stored runs in the format of Every Eval Ever 0.3.0. Texts are those of our own "
    "datasets only."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="where to write")
    parser.add_argument(
        "--organization", default="unknown", help="name of the evaluator (default: %(default)s)"
    )
    parser.add_argument(
        "--relationship",
        choices=("first_party", "third_party", "collaborative", "other"),
        default="other",
        help="of the evaluator to the maker of the model (default: %(default)s)",
    )
    add_gzip(parser)
    add_results(parser, stored=True)


def run(arguments: argparse.Namespace) -> bool:
    """Write the runs of a results folder and say where they are.

    Returns:
        Whether every run could be written with the scores of all its samples.

    Raises:
        PiiBenchError: there is no run, a stored one is broken, or a file cannot be written.
    """
    results, out, compress = arguments.results, arguments.out, arguments.gzip
    exported = export_runs(
        results,
        out,
        Evaluator(arguments.organization, arguments.relationship),
        created=int(time.time()),
        compress=compress,
        announce=partial(log_big, out=out, compressed=compress),
    )
    log_left_out(exported.left_out)
    for path in exported.incomplete:
        log(f"incomplete: {path}")
    if not exported.files and not exported.left_out:
        raise PiiBenchError(f"{results}: no run in it to export")
    echo(f"{len(exported.files)} runs in {out}")
    return not (exported.incomplete or exported.left_out)
