"""`pii-bench fit`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pii_bench.cli.options import add_options
from pii_bench.cli.terminal import echo
from pii_bench.systems.relevance.catalog import FITTED, fit_thresholds

if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command and its arguments."""
    parser.description = (
        "Fit the thresholds of relevance systems on the dev sets, and write them with the hashes "
        "of those sets."
    )
    parser.add_argument(
        "systems",
        nargs="*",
        metavar="SYSTEM",
        help="random, keyword, embedding or embedding-minilm (default: all but the last)",
    )
    add_options(parser, "--data")
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("data/models/relevance/thresholds.json"),
        metavar="FILE",
        help="file of the thresholds (default: %(default)s)",
    )


def run(arguments: argparse.Namespace) -> bool:
    """Fit the thresholds of relevance systems on the dev sets."""
    names = arguments.systems or [name for name in FITTED if not FITTED[name].extra]
    sets = [arguments.data / f"dev-{name}.jsonl" for name in ("single", "multi")]
    for name, fitted in fit_thresholds(names, sets, arguments.out).items():
        echo(f"{name}: threshold {fitted.threshold:.4f}, dev F1 {fitted.f1:.3f}")
    echo(f"thresholds: {arguments.out}")
    return True
