"""The drops of systems on versions of samples: a row for each kind, a mark for each system."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from matplotlib.figure import Figure

from pii_bench.analysis.figures.style import GREY, SERIES, WIDTH, key
from pii_bench.analysis.figures.systems import names_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pii_bench.analysis.figures.systems import Shown
    from pii_bench.analysis.robustness import Robustness

_ROW: Final = 0.12
"""Height of a mark in inches."""

_COLUMNS: Final = 3


def draw_robustness(found: Sequence[Robustness], systems: Shown, label: str) -> Figure:
    """The drops of systems by kind, with their intervals.

    Args:
        found: of one task and metric.
        systems: what is shown, in their order.
        label: of the metric.
    """
    kinds = list(dict.fromkeys(each.kind for each in found if each.run in systems.runs))
    count = len(systems.runs)
    figure = Figure(figsize=(WIDTH, _ROW * (count + 1) * len(kinds) + 1.1), layout="constrained")
    panel = figure.subplots()
    for each in found:
        if each.run not in systems.runs:
            continue
        number = systems.runs.index(each.run)
        height = kinds.index(each.kind) + (number - (count - 1) / 2) / (count + 1)
        series = SERIES[number]
        panel.plot(
            each.drop,
            height,
            color=series.color,
            marker=series.marker,
            markeredgecolor="white",
            clip_on=False,
            zorder=3,
        )
        if each.drop_low is not None and each.drop_high is not None:
            ends = each.drop_low, each.drop_high
            panel.hlines(height, *ends, color=series.color, linewidth=1.6, alpha=0.45, zorder=2)
    panel.axvline(0, color=GREY, linewidth=0.7, zorder=1)
    panel.set_yticks(range(len(kinds)), kinds)
    panel.tick_params(axis="y", length=0)
    panel.set_ylim(len(kinds) - 0.5, -0.5)
    panel.grid(visible=False, axis="y")
    panel.grid(visible=True, axis="x")
    panel.set_xlabel(f"Drop of {label}")
    names = names_of(systems.runs)
    keys = [key(number, names[run], line=False) for number, run in enumerate(systems.runs)]
    figure.legend(handles=keys, loc="outside upper center", ncols=_COLUMNS)
    return figure
