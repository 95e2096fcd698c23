"""Marks in rows of systems, kinds, types or categories; and tables of tinted cells."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Final

from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from pii_bench.analysis.figures.style import BAND, GREY, SERIES, WIDTH, keys_of, names_of
from pii_bench.analysis.means import HARDER
from pii_bench.analysis.runs import BASE
from pii_bench.escaping import visible
from pii_bench.ranking.rows import Source
from pii_bench.taxonomy import CATEGORIES, TYPE_OF_CATEGORY, PiiType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from pii_bench.analysis.agreement import Agreement
    from pii_bench.analysis.figures.style import Shown
    from pii_bench.analysis.means import Headline
    from pii_bench.analysis.recall import Share
    from pii_bench.analysis.robustness import Robustness

SETS: Final = ("+".join(BASE), *HARDER)

_SYSTEM: Final = 0.2
_MARK: Final = 0.12
_TYPE: Final = 0.3
_CATEGORY: Final = 0.19
"""Heights in inches: some thirty categories fit on a page."""

_DOT_OF_TYPE: Final = 0.075
_DOT_OF_CATEGORY: Final = 0.045
"""Height that each system adds to a row in inches."""

_FRAME: Final = 1.0
"""Height of axis, labels and legend in inches."""

_CELL: Final = 0.62
"""Height of a cell in inches."""

_STEP_OF_SETS: Final = 0.14
_STEP: Final = 0.2
_SPREAD: Final = 0.6
"""Of the height of a row: between two marks, and between the first and the last at most."""

_COLUMNS: Final = 3
_RATES: Final = {"recall": "Recall", "precision": "Precision", "f1": "F1"}


def draw_drops(headlines: Sequence[Headline], label: str) -> Figure:
    """The figures of each system on the three sets, with the intervals of ours.

    Ours are above the published ones, the best on single and multi first, those that are
    told gold last.

    Args:
        headlines: of one task and metric, on the sets `SETS`, of systems that are complete on
            the first and on one more.
        label: of the metric.
    """
    systems: dict[tuple[bool, str, str], dict[str, Headline]] = {}
    for each in headlines:
        system = _is_published(each), each.run.model, each.run.strategy
        systems.setdefault(system, {})[each.run.dataset] = each
    rows = sorted(systems.values(), key=lambda sets: _order(sets[SETS[0]]))
    figure = Figure(figsize=(WIDTH, _SYSTEM * len(rows) + 0.85), layout="constrained")
    panel = figure.subplots()
    for place, sets in enumerate(rows):
        values = [each.value for each in sets.values()]
        panel.hlines(place, min(values), max(values), color=GREY, linewidth=0.7, zorder=1)
        for number, name in enumerate(SETS):
            if name in sets:
                each, height = sets[name], place + _STEP_OF_SETS * (number - 1)
                _mark(panel, number, each.value, height, hollow=_is_published(each))
                _interval(panel, number, height, 2.2, each.interval_low, each.interval_high)
    bases = [sets[SETS[0]] for sets in rows]
    published = [place for place, each in enumerate(bases) if _is_published(each)]
    names = {
        **names_of([each.run for each in bases if not _is_published(each)]),
        **names_of([each.run for each in bases if _is_published(each)]),
    }
    _label(panel, [names[each.run] for each in bases])
    panel.set_xlim(0, 1)
    panel.set_xlabel(label)
    if published:
        ends = min(published) - 0.5, max(published) + 0.5
        panel.axhspan(*ends, color=BAND, linewidth=0, zorder=0)
        panel.text(0.005, min(published), "published", va="center", fontsize=6.5, color=GREY)
    figure.legend(handles=_keys(headlines), loc="outside upper center", ncols=len(SETS))
    return figure


def _is_published(each: Headline) -> bool:
    return each.run.source is Source.PUBLISHED


def _order(base: Headline) -> tuple[bool, bool, float]:
    return _is_published(base), base.run.oracle, -base.value


def _keys(headlines: Sequence[Headline]) -> list[Line2D]:
    """One per set, with the samples that ours are means of."""
    drawn = {each.run.dataset for each in headlines}
    samples = {each.run.dataset: each.samples for each in headlines if each.samples}
    return [
        Line2D(
            [],
            [],
            linestyle="none",
            color=series.color,
            marker=series.marker,
            label=f"{name} (n = {samples[name]})" if name in samples else name,
        )
        for name, series in zip(SETS, SERIES, strict=False)
        if name in drawn
    ]


def draw_robustness(found: Sequence[Robustness], systems: Shown, label: str) -> Figure:
    """The drops of systems by kind, with their intervals.

    Args:
        found: of one task and metric.
        systems: what is shown, in their order.
        label: of the metric.
    """
    kept = [each for each in found if each.run in systems.runs]
    kinds = list(dict.fromkeys(each.kind for each in kept))
    count = len(systems.runs)
    height = _MARK * (count + 1) * len(kinds) + 1.1
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    panel = figure.subplots()
    for each in kept:
        number = systems.runs.index(each.run)
        height = kinds.index(each.kind) + (number - (count - 1) / 2) / (count + 1)
        _mark(panel, number, each.drop, height)
        _interval(panel, number, height, 1.6, each.drop_low, each.drop_high)
    panel.axvline(0, color=GREY, linewidth=0.7, zorder=1)
    _label(panel, kinds)
    panel.set_xlabel(f"Drop of {label}")
    keys = keys_of(systems.runs, line=False)
    figure.legend(handles=keys, loc="outside upper center", ncols=_COLUMNS)
    return figure


def draw_types(shares: Sequence[Share], systems: Shown) -> Figure:
    """Recall by type, and with it precision and F1 where the answers name types.

    Args:
        shares: of types, of one task and by one rule.
        systems: which of them are drawn.
    """
    kept = [share for share in shares if share.run in systems.runs]
    named = any(share.predicted is not None for share in kept)
    rates = list(_RATES) if named else ["recall"]
    rows = list(dict.fromkeys(share.name for share in kept))
    height = max(_TYPE, _DOT_OF_TYPE * len(systems.runs)) * len(rows) + _FRAME
    figure = Figure(figsize=(WIDTH if named else WIDTH / 2, height), layout="constrained")
    panels = figure.subplots(1, len(rates), sharey=True, squeeze=False)[0]
    panels[0].set_ylabel("Type (gold entities)")
    for rate, panel in zip(rates, panels, strict=True):
        _draw_shares(panel, rows, kept, rate, systems)
        panel.set_xlabel(_RATES[rate] + (f", {systems.dataset}" if rate == "recall" else ""))
    _legend(figure, systems, _COLUMNS if named else 1)
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
    height = max(_CATEGORY, _DOT_OF_CATEGORY * len(systems.runs)) * longest + _FRAME
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    panels = figure.subplots(1, 2, sharex=True)
    for rows, panel in zip(columns, panels, strict=True):
        if not rows:
            panel.set_axis_off()
            continue
        _draw_shares(panel, rows, kept, "recall", systems)
        panel.set_ylabel("Category (gold entities)")
        panel.set_ylim(longest - 0.5, -0.5)
        panel.set_xlabel(f"Recall, {systems.dataset}")
    _legend(figure, systems, _COLUMNS)
    return figure


def _in_two(present: set[str]) -> tuple[list[PiiType], list[PiiType]]:
    """The types in two parts with as equal numbers of categories as can be."""
    types = [kind for kind in PiiType if present & set(CATEGORIES[kind])]
    parts = [set(part) for size in range(1, len(types) + 1) for part in combinations(types, size)]

    def longer(part: set[PiiType]) -> int:
        first = sum(len(present & set(CATEGORIES[kind])) for kind in part)
        return max(first, len(present & TYPE_OF_CATEGORY.keys()) - first)

    first = min(parts, key=longer, default=set[PiiType]())
    return [k for k in types if k in first], [k for k in types if k not in first]


def _draw_shares(
    panel: Axes, rows: Sequence[str], shares: Sequence[Share], rate: str, systems: Shown
) -> None:
    of_row = {(share.run, share.name): share for share in shares}
    count = len(systems.runs)
    step = min(_STEP, _SPREAD / max(count - 1, 1))
    for number, run in enumerate(systems.runs):
        shift = step * (number - (count - 1) / 2)
        dots = [
            (value, place + shift)
            for place, name in enumerate(rows)
            if (share := of_row.get((run, name))) and (value := getattr(share, rate)) is not None
        ]
        panel.plot(
            [value for value, _ in dots],
            [place for _, place in dots],
            linestyle="none",
            color=SERIES[number].color,
            marker=SERIES[number].marker,
            markeredgecolor="white",
            markersize=5.5 if len(rows) <= len(PiiType) else 4.5,
            clip_on=False,
            zorder=3,
        )
    by_name = {share.name: share for share in shares}
    _label(panel, [f"{visible(name)} ({by_name[name].gold})" for name in rows])
    panel.set_xlim(0, 1)
    _band(panel, [by_name[name].type for name in rows])


def _band(panel: Axes, types: Sequence[str]) -> None:
    """Shade every other type; where a type has several rows, its name is in the first."""
    groups = list(dict.fromkeys(types))
    for place, kind in enumerate(types):
        if groups.index(kind) % 2:
            panel.axhspan(place - 0.5, place + 0.5, color=BAND, linewidth=0, zorder=0)
        if len(groups) < len(types) and place == types.index(kind):
            panel.text(0.015, place, kind, va="center", fontsize=6.5, color=GREY)


def _legend(figure: Figure, systems: Shown, columns: int) -> None:
    handles = keys_of(systems.runs, line=False)
    figure.legend(handles=handles, loc="outside upper center", ncols=columns, handlelength=1.2)


def _mark(panel: Axes, number: int, x: float, y: float, *, hollow: bool = False) -> None:
    color = SERIES[number].color
    panel.plot(
        x,
        y,
        color=color,
        marker=SERIES[number].marker,
        markerfacecolor="white" if hollow else color,
        markeredgecolor=color if hollow else "white",
        markeredgewidth=1.0 if hollow else 0.4,
        clip_on=False,
        zorder=3,
    )


def _interval(
    panel: Axes, number: int, y: float, width: float, low: float | None, high: float | None
) -> None:
    if low is not None and high is not None:
        color = SERIES[number].color
        panel.hlines(y, low, high, color=color, linewidth=width, alpha=0.45, zorder=2)


def _label(panel: Axes, names: Sequence[str]) -> None:
    """Name the rows, from the top down."""
    panel.set_yticks(range(len(names)), names)
    panel.tick_params(axis="y", length=0)
    panel.set_ylim(len(names) - 0.5, -0.5)
    panel.grid(visible=False, axis="y")
    panel.grid(visible=True, axis="x")


def draw_agreement(agreements: Sequence[Agreement]) -> Figure:
    """Tables of ours, of the published figures, and of ours against them, where there are any.

    Each cell holds rho, the mean PCS and the number of systems. The darker, the larger rho; a
    cell without rho is white.

    Args:
        agreements: of one task and metric, between single sets.
    """
    tables: dict[str, list[Agreement]] = {
        "Ours": [],
        "Published": [],
        "Ours (rows) and published": [],
    }
    ours, theirs, both = tables.values()
    for each in agreements:
        if each.source_a == Source.PUBLISHED:
            theirs.append(each)
        else:
            (both if each.source_b == Source.PUBLISHED else ours).append(each)
    shown = {title: cells for title, cells in tables.items() if cells}
    widths = [len({cell.dataset_b for cell in cells}) for cells in shown.values()]
    height = max(len({cell.dataset_a for cell in cells}) for cells in shown.values())
    size = min(WIDTH, 1.1 * sum(widths) + 0.8), _CELL * height + 0.7
    figure = Figure(figsize=size, layout="constrained")
    panels = figure.subplots(1, len(shown), squeeze=False, width_ratios=widths)[0]
    for (title, cells), panel in zip(shown.items(), panels, strict=True):
        _draw_cells(panel, cells, height)
        panel.set_xlabel(title)
    return figure


def _draw_cells(panel: Axes, cells: Sequence[Agreement], height: int) -> None:
    rows = list(dict.fromkeys(cell.dataset_a for cell in cells))
    columns = list(dict.fromkeys(cell.dataset_b for cell in cells))
    for cell in cells:
        x, y = columns.index(cell.dataset_b), rows.index(cell.dataset_a)
        # From white to a grey on which black letters can be read.
        tint = "white" if cell.rho is None else str(1 - 0.35 * max(cell.rho, 0))
        corner = (x - 0.5, y - 0.5)
        square = Rectangle(corner, 1, 1, facecolor=tint, edgecolor="black", linewidth=0.5)
        square.set_clip_on(False)
        panel.add_patch(square)
        rho, pcs = ("\N{EN DASH}" if v is None else f"{v:.2f}" for v in (cell.rho, cell.pcs))
        text = f"\N{GREEK SMALL LETTER RHO} {rho}\nPCS {pcs}\nn = {cell.systems}"
        panel.text(x, y, text, ha="center", va="center", fontsize=7, linespacing=1.3)
    panel.set_xlim(-0.5, len(columns) - 0.5)
    panel.set_ylim(height - 0.5, -0.5)
    panel.set_xticks(range(len(columns)), columns)
    panel.set_yticks(range(len(rows)), rows)
    panel.tick_params(length=0, labeltop=True, labelbottom=False)
    panel.grid(visible=False)
    panel.spines[:].set_visible(False)
