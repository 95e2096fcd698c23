"""Readers of drawn figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.text import Text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def texts(figure: Figure) -> list[str]:
    """Return all texts that are not empty: labels, ticks, legend, remarks."""
    figure.draw_without_rendering()
    return [artist.get_text() for artist in figure.findobj(Text) if artist.get_text()]


def legend(figure: Figure) -> list[str]:
    """Return the labels of the only legend."""
    legends = [*figure.legends, *(axes.get_legend() for axes in figure.axes)]
    (only,) = [legend for legend in legends if legend is not None]
    return [text.get_text() for text in only.get_texts()]


def points(panel: Axes) -> list[list[tuple[float, float]]]:
    """Return the points of each line of a panel, in drawing order."""
    lines = [np.asarray(line.get_xydata(), dtype=float) for line in panel.get_lines()]
    return [[(float(x), float(y)) for x, y in line] for line in lines]


def rows(axes: Axes) -> list[str]:
    return [label.get_text() for label in axes.get_yticklabels()]
