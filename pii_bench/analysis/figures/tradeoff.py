"""Protection against retention: a numbered point for each system."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from pii_bench.analysis.figures.style import GREY, LIGHT, SERIES, WIDTH
from pii_bench.analysis.figures.systems import names_of
from pii_bench.analysis.runs import preferred
from pii_bench.scorer.counts import harmonic_mean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pii_bench.analysis.tradeoffs import Tradeoff

_MOST: Final = 20
_LEVELS: Final = (0.2, 0.4, 0.6, 0.8)


def chosen(found: Sequence[Tradeoff]) -> list[Tradeoff]:
    """The complete runs on the set that most systems are complete on, the highest H first.

    At most 20; none where there are fewer than two, which make no comparison.
    """
    kept = preferred(each.run for each in found)
    systems = Counter(run.dataset for run in kept)
    if not systems:
        return []
    dataset = min(systems, key=lambda name: (-systems[name], name))
    own = [each for each in found if each.run in kept and each.run.dataset == dataset]
    own.sort(key=lambda each: (each.run.oracle, -_h(each), each.run.model, each.run.strategy))
    return own[:_MOST] if len(own) > 1 else []


def draw_tradeoff(shown: Sequence[Tradeoff]) -> Figure:
    """One panel with lines of equal H; systems that are told gold are hollow."""
    figure = Figure(figsize=(WIDTH, 4.2), layout="constrained")
    panel = figure.subplots()
    for level in _LEVELS:
        retention = np.linspace(level / (2 - level), 1, 100)
        panel.plot(retention, level * retention / (2 * retention - level), color=LIGHT, lw=0.7)
        panel.annotate(f"H {level}", (1, level / (2 - level)), fontsize=6.5, color=GREY)
    names = names_of([each.run for each in shown])
    handles = []
    for number, each in enumerate(shown, start=1):
        color = GREY if each.run.oracle else SERIES[0].color
        face = "white" if each.run.oracle else color
        point = Line2D([each.retention], [each.protection], color=color, linestyle="none")
        point.set(marker="o", markerfacecolor=face, label=f"{number}  {names[each.run]}")
        handles.append(panel.add_line(point))
        # Every third label goes to another side, for neighbours are often alike.
        shift = ((5, 3), (-11, 3), (5, -8))[number % 3]
        at = each.retention, each.protection
        panel.annotate(str(number), at, shift, textcoords="offset points", fontsize=7)
    panel.set_xlim(-0.03, 1.06)
    panel.set_ylim(-0.03, 1.06)
    panel.set_xlabel(f"Retention: what is needed and can be read ({shown[0].run.dataset})")
    panel.set_ylabel("Protection: what is not needed and cannot be read")
    figure.legend(handles=handles, loc="outside right upper", handlelength=1)
    return figure


def _h(each: Tradeoff) -> float:
    return harmonic_mean(each.protection, each.retention) or 0.0
