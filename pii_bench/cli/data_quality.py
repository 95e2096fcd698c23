"""`pii-bench data quality`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pii_bench.cli.terminal import say
from pii_bench.construction.quality import measure_quality, render
from pii_bench.datasets.readme import replace_block

if TYPE_CHECKING:
    from pathlib import Path


def report_quality(data: Path) -> bool:
    """Print the quality of single and multi and write it into the README beside them.

    Returns:
        True: a goal that is missed is a finding, and no error.

    Raises:
        InputFileError: a set is missing or broken, or the README has no place for the figures.
        MissingExtraError: what a shortcut needs is not installed.
        ResultsError: the README cannot be written.
    """
    table = render(measure_quality(data))
    say(table)
    replace_block("quality", table, data / "README.md")
    return True
