"""`pii-bench report`."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import TYPE_CHECKING

from pii_bench.analysis.report.data import Texts, collect_report
from pii_bench.analysis.report.page import render_page
from pii_bench.cli.options import add_options, stored_results
from pii_bench.cli.terminal import counted, echo, log, log_left_out
from pii_bench.files import write_whole

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command and its arguments."""
    parser.description = (
        "Write one self-contained HTML file: tables, figures, and every sample with gold and "
        "predicted entities marked, two runs side by side. By default it contains the texts of our "
        "own datasets only."
    )
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="file to write (default: report.html in --results)"
    )
    add_options(parser, "--dataset")
    parser.add_argument(
        "--model",
        nargs="+",
        metavar="SYSTEM",
        help="show samples of these systems only, named as for `compare`; tables show all",
    )
    texts = parser.add_mutually_exclusive_group()
    texts.add_argument(
        "--texts",
        dest="texts",
        action="store_const",
        const="all",
        default="ours",
        help="include the texts of other datasets too",
    )
    texts.add_argument(
        "--no-texts",
        dest="texts",
        action="store_const",
        const="none",
        help="include no texts",
    )
    add_options(parser, "--results", type=stored_results)


def run(arguments: argparse.Namespace) -> bool:
    """Write the page, and print where it is and what it leaves out; True if no run is left out."""
    texts = Texts(arguments.texts)
    out = arguments.out or arguments.results / "report.html"
    report = collect_report(
        arguments.results,
        dataset=arguments.dataset,
        systems=arguments.model or (),
        texts=texts,
        progress=_throttled_log(),
    )
    log_left_out(report.left_out)
    if report.figures.missing:
        log(f"no figures: {report.figures.missing}")
    if report.foreign_texts:
        names = ", ".join(report.foreign_texts)
        log(f"it contains the texts of {names}: the file is as private as they are")
    if report.without_texts:
        names = ", ".join(report.without_texts)
        hint = "" if texts is Texts.NONE else " (--texts includes them)"
        log(f"without the texts of {names}{hint}")
    write_whole(out, render_page(report))
    rows = counted(len(report.rows), "row")
    runs = counted(len(report.record["runs"]), "run")
    size = out.stat().st_size / 1e6
    echo(f"report: {out} ({rows}, {runs}, {size:.1f} MB)")
    return not report.left_out


def _throttled_log() -> Callable[[str], None]:
    """Return a function that logs a message unless it logged another in the last 2 seconds."""
    last = -math.inf

    def throttled(message: str) -> None:
        nonlocal last
        if time.monotonic() - last >= 2.0:
            last = time.monotonic()
            log(message)

    return throttled
