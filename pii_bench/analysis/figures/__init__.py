"""Figures for print. matplotlib is an extra: nothing here is imported before it is asked for."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from pii_bench.errors import MissingExtraError

if TYPE_CHECKING:
    from pathlib import Path

    from pii_bench.analysis.results import Analysis

INSTALL: Final = "pip install 'pii-bench[figures]'"


def draw_figures(analysis: Analysis, folder: Path) -> list[Path]:
    """Draw every figure that there is something of ours for, as SVG and PNG.

    Returns:
        The files.

    Raises:
        MissingExtraError: matplotlib is not installed.
        ResultsError: a file cannot be written.
    """
    if find_spec("matplotlib") is None:
        raise MissingExtraError("matplotlib, which draws the figures,", INSTALL)
    from pii_bench.analysis.figures.draw import draw_all

    return draw_all(analysis, folder)
