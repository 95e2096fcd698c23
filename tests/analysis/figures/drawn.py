"""What stands in a figure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.text import Text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def texts(figure: Figure) -> list[str]:
    """Every text that is not empty, as a reader finds it: labels, ticks, legend, remarks."""
    figure.draw_without_rendering()
    return [text for each in figure.findobj(Text) if (text := each.get_text())]


def legend(figure: Figure) -> list[str]:
    """The labels of the only legend."""
    (found,) = [
        legend
        for legend in (*figure.legends, *(axes.get_legend() for axes in figure.axes))
        if legend is not None
    ]
    return [text.get_text() for text in found.get_texts()]


def points(panel: Axes) -> list[list[tuple[float, float]]]:
    """The points of each line of a panel, in the order drawn."""
    lines = [np.asarray(line.get_xydata(), dtype=float) for line in panel.get_lines()]
    return [[(float(x), float(y)) for x, y in line] for line in lines]


def rows(axes: Axes) -> list[str]:
    return [label.get_text() for label in axes.get_yticklabels()]
