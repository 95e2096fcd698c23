"""The figures of `pii-bench analyse` as SVG texts."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pii_bench.analysis.figures import INSTALL, draw_figures
from pii_bench.analysis.results import analyse
from pii_bench.files import writing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pii_bench.analysis.runs import EvaluatedRun
    from pii_bench.ranking.rows import Row

NOT_INSTALLED: Final = (
    f"matplotlib, which draws the figures, is not installed: run {INSTALL} and this command again."
)
NOTHING_TO_DRAW: Final = "There is nothing to draw: figures need a run with every sample scored."

_KINDS: Final = {
    "tradeoff": "Protection against retention",
    "curves": "Score by size of the sample",
    "drops": "Drop on the harder sets",
    "agreement": "Agreement between datasets",
    "types": "What is found of each type",
    "categories": "What is found of each category",
}
"""First word of a figure's name to what it shows."""

_METRICS: Final = {
    "-strict-f1": ", Strict-F1",
    "-ent-f1": ", Ent-F1",
    "-f1": ", F1",
    "-h": ", H",
}


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure: what it shows in words, and its SVG."""

    caption: str
    svg: str


@dataclass(frozen=True, slots=True)
class Figures:
    """All figures, or the reason why there are none."""

    drawn: tuple[Figure, ...]
    missing: str = ""


def draw(runs: Sequence[EvaluatedRun], published: Sequence[Row]) -> Figures:
    """Draw what there is to draw of some runs.

    Args:
        runs: of single sets.
        published: rows of published figures.

    Raises:
        InputFileError: a published table is broken.
        ResultsError: a temporary file cannot be written.
    """
    if find_spec("matplotlib") is None:
        return Figures((), NOT_INSTALLED)
    if not runs:
        return Figures((), NOTHING_TO_DRAW)
    with (
        writing(Path(tempfile.gettempdir())),
        tempfile.TemporaryDirectory(prefix="pii-bench-report-") as folder,
    ):
        files = draw_figures(analyse(runs, published), Path(folder))
        drawn = tuple(
            Figure(_caption(path.stem), path.read_text(encoding="utf-8"))
            for path in files
            if path.suffix == ".svg"
        )
    return Figures(drawn, "" if drawn else NOTHING_TO_DRAW)


def _caption(name: str) -> str:
    kind, _, rest = name.partition("-")
    for ending, metric in _METRICS.items():
        if rest.endswith(ending):
            rest = rest.removesuffix(ending) + metric
            break
    return f"{_KINDS[kind]}: {rest}"
