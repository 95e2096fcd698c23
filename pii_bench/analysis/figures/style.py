"""How figures look, and how they become files."""

from __future__ import annotations

import io
import warnings
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal

from matplotlib import rc_context
from matplotlib.lines import Line2D

from pii_bench.files import replacing, writing

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH: Final = 7.0
"""Inches: the text of a page in two columns."""

GREY: Final = "#595959"
LIGHT: Final = "#D9D9D9"
BAND: Final = "#F0F0F0"

STYLE: Final[Mapping[Any, Any]] = MappingProxyType(
    {
        "font.family": "DejaVu Sans",  # comes with matplotlib, so it is the same everywhere
        "font.size": 8,
        "text.parse_math": False,  # a name with two $ is no formula
        "axes.labelsize": 8,
        "axes.titlesize": 8,
        "axes.linewidth": 0.6,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.axisbelow": True,
        "axes.grid": True,
        "axes.grid.axis": "y",
        "grid.color": LIGHT,
        "grid.linewidth": 0.5,
        "xtick.labelsize": 7,
        "ytick.labelsize": 7,
        "xtick.major.width": 0.6,
        "ytick.major.width": 0.6,
        "xtick.major.size": 2.5,
        "ytick.major.size": 2.5,
        "legend.fontsize": 7.5,
        "legend.frameon": False,
        "legend.handlelength": 3.2,
        "lines.linewidth": 1.2,
        "lines.markersize": 5.5,
        "lines.markeredgewidth": 0.4,
        "figure.dpi": 100,
        "savefig.dpi": 300,
        "svg.hashsalt": "pii_bench",
        "svg.fonttype": "path",
    }
)


@dataclass(frozen=True, slots=True)
class Series:
    """How one system is drawn: told apart by colour, in grey by marker and dashes."""

    color: str
    marker: str
    dashes: Literal["-"] | tuple[float, tuple[float, ...]]


# Okabe and Ito's colours, which the colour-blind tell apart.
SERIES: Final = (
    Series("#0072B2", "o", "-"),
    Series("#D55E00", "s", (0, (4, 1.5))),
    Series("#009E73", "^", (0, (6, 1.5, 1, 1.5))),
    Series("#000000", "D", (0, (1, 1.2))),
    Series("#CC79A7", "v", (0, (2.5, 1, 2.5, 1, 1, 1))),
    Series("#E69F00", "P", (0, (3, 3))),
)


def key(number: int, label: str, *, line: bool = True) -> Line2D:
    """The sample of a series for a legend, its marker alone where it has no line."""
    series = SERIES[number]
    return Line2D(
        [],
        [],
        color=series.color,
        marker=series.marker,
        markeredgecolor="white",
        linestyle=series.dashes if line else "none",
        label=label,
    )


def note(
    panel: Axes,
    text: str,
    at: tuple[float, float],
    shift: tuple[float, float],
    *,
    x_data: bool = True,
    align: str = "center",
) -> None:
    """Write a small grey remark under or over the axes.

    Args:
        panel: where.
        text: what.
        at: the point that it is placed by: y as a part of the panel's height, x in its data
            or likewise.
        shift: from there, in points; upwards the text begins there, else it ends there.
        x_data: whether x is in data.
        align: the side of the text that is at the point.
    """
    panel.annotate(
        text,
        at,
        shift,
        xycoords=("data" if x_data else "axes fraction", "axes fraction"),
        textcoords="offset points",
        ha=align,
        va="bottom" if shift[1] > 0 else "top",
        fontsize=6.5,
        color=GREY,
    )


def save(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Write a figure as SVG and PNG, without a date: equal figures give equal bytes.

    Raises:
        ResultsError: a file cannot be written.
    """
    paths = []
    metadata: dict[str, dict[str, Any]] = {"svg": {"Date": None}, "png": {"Software": None}}
    for kind, facts in metadata.items():
        content = io.BytesIO()
        with rc_context(dict(STYLE)), warnings.catch_warnings():
            # The font lacks a script, or a name leaves no room: the figure shows it.
            warnings.filterwarnings("ignore", "Glyph|constrained_layout", UserWarning)
            figure.savefig(content, format=kind, metadata=facts)
        path = folder / f"{name}.{kind}"
        with writing(path):
            folder.mkdir(parents=True, exist_ok=True)
            with replacing(path) as file:
                file.write(content.getvalue())
        paths.append(path)
    return paths
