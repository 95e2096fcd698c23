"""Figures for print. matplotlib is an optional extra, so it is imported only when drawing."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from pii_bench.analysis.results import analyse
from pii_bench.errors import MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pii_bench.analysis.results import Analysis
    from pii_bench.analysis.runs import EvaluatedRun
    from pii_bench.ranking.rows import Row

_INSTALL: Final = "pip install -e '.[figures]'"

NOT_INSTALLED: Final = (
    f"matplotlib, which draws the figures, is not installed: run {_INSTALL} in the folder of the "
    "repository and this command again."
)
NOTHING_TO_DRAW: Final = "they need a run in which every sample is scored"


@dataclass(frozen=True, slots=True)
class Figure:
    """The caption and the SVG of a figure."""

    caption: str
    svg: str


@dataclass(frozen=True, slots=True)
class Figures:
    """All figures, or in `missing` the reason why there are none."""

    drawn: tuple[Figure, ...]
    missing: str = ""


def draw_figures(analysis: Analysis, folder: Path) -> list[Path]:
    """Draw every figure that shows a run of ours, save it as SVG and PNG, and return the files.

    Raises:
        MissingExtraError: matplotlib is not installed.
        ResultsError: a file cannot be written.
    """
    if find_spec("matplotlib") is None:
        raise MissingExtraError("matplotlib, which draws the figures,", _INSTALL)
    from pii_bench.analysis.figures.draw import draw_all
    from pii_bench.analysis.figures.style import save

    return [path for name, _, figure in draw_all(analysis) for path in save(figure, folder, name)]


def draw_svgs(runs: Sequence[EvaluatedRun], published: Sequence[Row]) -> Figures:
    """Draw the figures of runs on single sets and return them as SVG with captions.

    Raises:
        InputFileError: a published table is broken.
    """
    if find_spec("matplotlib") is None:
        return Figures((), NOT_INSTALLED)
    if not runs:
        return Figures((), NOTHING_TO_DRAW)
    from pii_bench.analysis.figures.draw import draw_all
    from pii_bench.analysis.figures.style import file_of

    drawn = tuple(
        Figure(caption, file_of(figure, "svg").decode())
        for _, caption, figure in draw_all(analyse(runs, published))
    )
    return Figures(drawn, "" if drawn else NOTHING_TO_DRAW)
