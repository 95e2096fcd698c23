"""What is found of each type and of each category, as dots in rows."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Final

from matplotlib.figure import Figure

from pii_bench.analysis.figures.style import BAND, GREY, SERIES, WIDTH, key, names_of
from pii_bench.escaping import visible
from pii_bench.taxonomy import CATEGORIES, TYPE_OF_CATEGORY, PiiType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from pii_bench.analysis.figures.style import Shown
    from pii_bench.analysis.recall import Share

_ROW: Final = 0.3
_SMALL_ROW: Final = 0.19
"""Least height of a type and of a category in inches: some thirty categories fit on a page."""

_DOT: Final = 0.075
_SMALL_DOT: Final = 0.045
"""Height that each system adds to a row in inches."""

_FRAME: Final = 1.0
"""Height of axis, labels and legend in inches."""


def draw_types(shares: Sequence[Share], systems: Shown) -> Figure:
    """Recall by type, and with it precision and F1 where the answers name types.

    Args:
        shares: of types, of one task and by one rule.
        systems: which of them are drawn.
    """
    kept = [share for share in shares if share.run in systems.runs]
    rates = ["recall"]
    if any(share.predicted is not None for share in kept):
        rates = ["recall", "precision", "f1"]
    rows = list(dict.fromkeys(share.name for share in kept))
    width = WIDTH if len(rates) > 1 else WIDTH / 2
    height = max(_ROW, _DOT * len(systems.runs))
    figure = Figure(figsize=(width, height * len(rows) + _FRAME), layout="constrained")
    panels = figure.subplots(1, len(rates), sharey=True, squeeze=False)[0]
    panels[0].set_ylabel("Type (gold entities)")
    for rate, panel in zip(rates, panels, strict=True):
        _draw_rows(panel, rows, kept, rate, systems)
        panel.set_xlabel(
            f"{_LABELS[rate]}, {systems.dataset}" if rate == "recall" else _LABELS[rate]
        )
    _legend(figure, systems, 3 if len(rates) > 1 else 1)
    return figure


def draw_categories(shares: Sequence[Share], systems: Shown) -> Figure:
    """Recall by category, grouped by type in two columns.

    Args:
        shares: of categories, of one task and by one rule.
        systems: which of them are drawn.
    """
    kept = [share for share in shares if share.run in systems.runs]
    present = {share.name for share in kept}
    columns = [
        [name for kind in types for name in CATEGORIES[kind] if name in present]
        for types in _in_two(present)
    ]
    longest = max(map(len, columns))
    height = max(_SMALL_ROW, _SMALL_DOT * len(systems.runs))
    figure = Figure(figsize=(WIDTH, height * longest + _FRAME), layout="constrained")
    panels = figure.subplots(1, 2, sharex=True)
    for rows, panel in zip(columns, panels, strict=True):
        if not rows:
            panel.set_axis_off()
            continue
        _draw_rows(panel, rows, kept, "recall", systems)
        panel.set_ylabel("Category (gold entities)")
        panel.set_ylim(longest - 0.5, -0.5)
        panel.set_xlabel(f"Recall, {systems.dataset}")
    _legend(figure, systems, 3)
    return figure


_LABELS: Final = {"recall": "Recall", "precision": "Precision", "f1": "F1"}
_STEP: Final = 0.2
_SPREAD: Final = 0.6
"""Of the height of a row: between two dots, and between the first and the last at most."""


def _in_two(present: set[str]) -> tuple[list[PiiType], list[PiiType]]:
    """The types in two parts with as equal numbers of categories as can be."""
    types = [kind for kind in PiiType if present & set(CATEGORIES[kind])]
    parts = [set(part) for size in range(1, len(types) + 1) for part in combinations(types, size)]

    def longer(part: set[PiiType]) -> int:
        first = sum(len(present & set(CATEGORIES[kind])) for kind in part)
        return max(first, len(present & TYPE_OF_CATEGORY.keys()) - first)

    first = min(parts, key=longer, default=set[PiiType]())
    return [k for k in types if k in first], [k for k in types if k not in first]


def _draw_rows(
    panel: Axes, rows: Sequence[str], shares: Sequence[Share], rate: str, systems: Shown
) -> None:
    of_row = {(share.run, share.name): share for share in shares}
    count = len(systems.runs)
    step = min(_STEP, _SPREAD / max(count - 1, 1))
    size = 5.5 if len(rows) <= len(PiiType) else 4.5
    for number, run in enumerate(systems.runs):
        shift = step * (number - (count - 1) / 2)
        dots = [
            (value, place + shift)
            for place, name in enumerate(rows)
            if (share := of_row.get((run, name))) and (value := getattr(share, rate)) is not None
        ]
        series = SERIES[number]
        panel.plot(
            [value for value, _ in dots],
            [place for _, place in dots],
            linestyle="none",
            color=series.color,
            marker=series.marker,
            markeredgecolor="white",
            markersize=size,
            clip_on=False,
            zorder=3,
        )
    gold = {share.name: share.gold for share in shares}
    panel.set_yticks(range(len(rows)), [f"{visible(name)} ({gold[name]})" for name in rows])
    panel.tick_params(axis="y", length=0)
    panel.set_ylim(len(rows) - 0.5, -0.5)
    panel.set_xlim(0, 1)
    panel.grid(visible=False, axis="y")
    panel.grid(visible=True, axis="x")
    _band(panel, [next(s.type for s in shares if s.name == name) for name in rows])


def _band(panel: Axes, types: Sequence[str]) -> None:
    """Shade every other type; where a type has several rows, its name is in the first."""
    groups = list(dict.fromkeys(types))
    for place, kind in enumerate(types):
        if groups.index(kind) % 2:
            panel.axhspan(place - 0.5, place + 0.5, color=BAND, linewidth=0, zorder=0)
        if len(groups) < len(types) and place == types.index(kind):
            panel.text(0.015, place, kind, va="center", fontsize=6.5, color=GREY)


def _legend(figure: Figure, systems: Shown, columns: int) -> None:
    names = names_of(systems.runs)
    handles = [key(number, names[run], line=False) for number, run in enumerate(systems.runs)]
    figure.legend(handles=handles, loc="outside upper center", ncols=columns, handlelength=1.2)
