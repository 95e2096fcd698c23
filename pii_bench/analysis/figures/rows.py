"""Dot plots with a row per system, perturbation, type or category; and tables of agreement."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Final, Literal

from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from pii_bench.analysis.figures.style import BAND, DOTS, GREY, SERIES, WIDTH, keys_of, names_of
from pii_bench.analysis.means import HARDER
from pii_bench.analysis.runs import BASE
from pii_bench.escaping import visible
from pii_bench.ranking.rows import Source
from pii_bench.taxonomy import CATEGORIES, PiiType

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes

    from pii_bench.analysis.agreement import Agreement
    from pii_bench.analysis.means import Headline
    from pii_bench.analysis.recall import Share
    from pii_bench.analysis.robustness import Robustness
    from pii_bench.analysis.runs import RunName

SETS: Final = ("+".join(BASE), *HARDER)

# Heights in inches.
_SYSTEM_ROW: Final = 0.2
_MARK: Final = 0.12
_TYPE_ROW: Final = 0.3
_TYPE_DOT: Final = 0.075
_CATEGORY_ROW: Final = 0.19  # some thirty categories fit on a page
_CATEGORY_DOT: Final = 0.045
_FRAME: Final = 1.0  # axis, labels and legend
_CELL: Final = 0.62

# Offsets between marks of one row, as fractions of its height.
_STEP_OF_SETS: Final = 0.14
_STEP: Final = 0.2
_SPREAD: Final = 0.6  # from the first to the last mark at most

_LEGEND_COLUMNS: Final = 3
_RATES: Final = {"recall": "Recall", "precision": "Precision", "f1": "F1"}


def draw_drops(headlines: Sequence[Headline], label: str) -> Figure:
    """Draw the scores of each system on the three sets, with the intervals of our runs.

    Our runs are above the published ones, sorted by score on the first set, oracles last. The
    headlines are of one metric, the label, and of systems that are complete on the first set and
    at least one other.
    """

    def order(sets: Mapping[str, Headline]) -> tuple[bool, bool, float]:
        base = sets[SETS[0]]
        return _is_published(base), base.run.oracle, -base.value

    systems: dict[tuple[bool, str, str], dict[str, Headline]] = {}
    for headline in headlines:
        run = headline.run
        system = _is_published(headline), run.model, run.strategy
        systems.setdefault(system, {})[run.dataset] = headline
    rows = sorted(systems.values(), key=order)
    figure = Figure(figsize=(WIDTH, _SYSTEM_ROW * len(rows) + 0.85), layout="constrained")
    panel = figure.subplots()
    for place, sets in enumerate(rows):
        values = [headline.value for headline in sets.values()]
        panel.hlines(place, min(values), max(values), color=GREY, linewidth=0.7, zorder=1)
        for number, name in enumerate(SETS):
            if name not in sets:
                continue
            headline = sets[name]
            y = place + _STEP_OF_SETS * (number - 1)
            _mark(panel, number, headline.value, y, hollow=_is_published(headline))
            _interval(panel, number, y, 2.2, headline.interval_low, headline.interval_high)
    bases = [sets[SETS[0]] for sets in rows]
    published = [place for place, base in enumerate(bases) if _is_published(base)]
    names = {
        **names_of([base.run for base in bases if not _is_published(base)]),
        **names_of([base.run for base in bases if _is_published(base)]),
    }
    _label(panel, [names[base.run] for base in bases])
    panel.set_xlim(0, 1)
    panel.set_xlabel(label)
    if published:
        ends = min(published) - 0.5, max(published) + 0.5
        panel.axhspan(*ends, color=BAND, linewidth=0, zorder=0)
        panel.text(0.005, min(published), "published", va="center", fontsize=6.5, color=GREY)
    figure.legend(handles=_keys(headlines), loc="outside upper center", ncols=len(SETS))
    return figure


def _is_published(headline: Headline) -> bool:
    return headline.run.source is Source.PUBLISHED


def _keys(headlines: Sequence[Headline]) -> list[Line2D]:
    """Return a legend entry per set, with the number of samples of our runs."""
    drawn = {each.run.dataset for each in headlines}
    samples = {each.run.dataset: each.samples for each in headlines if each.samples}
    return [
        Line2D([], [], **dots, label=f"{name} (n = {samples[name]})" if name in samples else name)
        for name, dots in zip(SETS, DOTS, strict=False)
        if name in drawn
    ]


def draw_robustness(drops: Sequence[Robustness], systems: Sequence[RunName], label: str) -> Figure:
    """Draw the drops of systems in one metric, the label, by perturbation, with intervals."""
    kept = [drop for drop in drops if drop.run in systems]
    kinds = list(dict.fromkeys(drop.kind for drop in kept))
    count = len(systems)
    size = WIDTH, _MARK * (count + 1) * len(kinds) + 1.1
    figure = Figure(figsize=size, layout="constrained")
    panel = figure.subplots()
    for drop in kept:
        number = systems.index(drop.run)
        y = kinds.index(drop.kind) + (number - (count - 1) / 2) / (count + 1)
        _mark(panel, number, drop.drop, y, hollow=False)
        _interval(panel, number, y, 1.6, drop.drop_low, drop.drop_high)
    panel.axvline(0, color=GREY, linewidth=0.7, zorder=1)
    _label(panel, kinds)
    panel.set_xlabel(f"Drop of {label}")
    keys = keys_of(systems, line=False)
    figure.legend(handles=keys, loc="outside upper center", ncols=_LEGEND_COLUMNS)
    return figure


def draw_types(shares: Sequence[Share], systems: Sequence[RunName]) -> Figure:
    """Draw recall by type, and precision and F1 if the predictions name types."""
    names = list(dict.fromkeys(share.name for share in shares))
    typed = any(share.predicted is not None for share in shares)
    columns = [(rate, names) for rate in (_RATES if typed else ["recall"])]
    row_height = max(_TYPE_ROW, _TYPE_DOT * len(systems))
    return _draw_shares(shares, systems, columns, "Type", row_height)


def draw_categories(shares: Sequence[Share], systems: Sequence[RunName]) -> Figure:
    """Draw recall by category, grouped by type in two columns."""
    columns = [("recall", names) for names in _in_two({share.name for share in shares})]
    row_height = max(_CATEGORY_ROW, _CATEGORY_DOT * len(systems))
    return _draw_shares(shares, systems, columns, "Category", row_height)


def _in_two(present: set[str]) -> tuple[list[str], list[str]]:
    """Split the categories that are present into two columns of similar length, types whole."""
    names = {
        kind: [name for name in categories if name in present]
        for kind, categories in CATEGORIES.items()
        if present.intersection(categories)
    }
    total = sum(map(len, names.values()))
    splits = [part for size in range(1, len(names) + 1) for part in combinations(names, size)]
    left = min(
        splits, key=lambda part: abs(2 * sum(len(names[kind]) for kind in part) - total), default=()
    )
    return (
        [name for kind in names if kind in left for name in names[kind]],
        [name for kind in names if kind not in left for name in names[kind]],
    )


def _draw_shares(
    shares: Sequence[Share],
    systems: Sequence[RunName],
    columns: Sequence[tuple[str, Sequence[str]]],
    kind: Literal["Type", "Category"],
    row_height: float,
) -> Figure:
    """Draw one panel per column, given as its rate and the names of its rows."""
    longest = max(len(names) for _, names in columns)
    wide = len(columns) > 1
    same_rows = kind == "Type"
    size = WIDTH if wide else WIDTH / 2, row_height * longest + _FRAME
    figure = Figure(figsize=size, layout="constrained")
    panels = figure.subplots(1, len(columns), sharey=same_rows, squeeze=False)[0]
    for panel, (rate, names) in zip(panels, columns, strict=True):
        if not names:
            panel.set_axis_off()
            continue
        _draw_dots(panel, names, shares, rate, systems)
        panel.set_ylim(longest - 0.5, -0.5)
        if panel is panels[0] or not same_rows:
            panel.set_ylabel(f"{kind} (gold entities)")
        panel.set_xlabel(_RATES[rate] + (f", {systems[0].dataset}" if rate == "recall" else ""))
    figure.legend(
        handles=keys_of(systems, line=False),
        loc="outside upper center",
        ncols=_LEGEND_COLUMNS if wide else 1,
        handlelength=1.2,
    )
    return figure


def _draw_dots(
    panel: Axes,
    names: Sequence[str],
    shares: Sequence[Share],
    rate: str,
    systems: Sequence[RunName],
) -> None:
    by_run_and_name = {(share.run, share.name): share for share in shares}
    count = len(systems)
    step = min(_STEP, _SPREAD / max(count - 1, 1))
    for number, run in enumerate(systems):
        values, places = [], []
        for place, name in enumerate(names):
            share = by_run_and_name.get((run, name))
            value = None if share is None else getattr(share, rate)
            if value is not None:
                values.append(value)
                places.append(place + step * (number - (count - 1) / 2))
        panel.plot(
            values,
            places,
            **DOTS[number],
            markeredgecolor="white",
            markersize=5.5 if len(names) <= len(PiiType) else 4.5,
            clip_on=False,
            zorder=3,
        )
    by_name = {share.name: share for share in shares}
    _label(panel, [f"{visible(name)} ({by_name[name].gold})" for name in names])
    panel.set_xlim(0, 1)
    _band(panel, [by_name[name].type for name in names])


def _band(panel: Axes, types: Sequence[str]) -> None:
    """Shade every other type; if types have several rows, name each in its first row."""
    groups = list(dict.fromkeys(types))
    for place, kind in enumerate(types):
        if groups.index(kind) % 2:
            panel.axhspan(place - 0.5, place + 0.5, color=BAND, linewidth=0, zorder=0)
        if len(groups) < len(types) and place == types.index(kind):
            panel.text(0.015, place, kind, va="center", fontsize=6.5, color=GREY)


def _mark(panel: Axes, number: int, x: float, y: float, *, hollow: bool) -> None:
    color = SERIES[number]["color"]
    panel.plot(
        x,
        y,
        color=color,
        marker=SERIES[number]["marker"],
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
        color = SERIES[number]["color"]
        panel.hlines(y, low, high, color=color, linewidth=width, alpha=0.45, zorder=2)


def _label(panel: Axes, names: Sequence[str]) -> None:
    """Label the rows from top to bottom."""
    panel.set_yticks(range(len(names)), names)
    panel.tick_params(axis="y", length=0)
    panel.set_ylim(len(names) - 0.5, -0.5)
    panel.grid(visible=False, axis="y")
    panel.grid(visible=True, axis="x")


def draw_agreement(agreements: Sequence[Agreement]) -> Figure:
    """Draw a table for our runs, for published figures, and for both, unless it is empty.

    Each cell shows rho, the mean PCS and the number of systems. A larger rho is darker; a cell
    without rho is white.
    """
    ours, published, both = "Ours", "Published", "Ours (rows) and published"
    tables: dict[str, list[Agreement]] = {ours: [], published: [], both: []}
    for agreement in agreements:
        if agreement.source_a == Source.PUBLISHED:
            tables[published].append(agreement)
        elif agreement.source_b == Source.PUBLISHED:
            tables[both].append(agreement)
        else:
            tables[ours].append(agreement)
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
        # From white to a grey that leaves black letters readable.
        tint = "white" if cell.rho is None else str(1 - 0.35 * max(cell.rho, 0))
        corner = (x - 0.5, y - 0.5)
        square = Rectangle(corner, 1, 1, facecolor=tint, edgecolor="black", linewidth=0.5)
        square.set_clip_on(False)
        panel.add_patch(square)
        rho, pcs = _number(cell.rho), _number(cell.pcs)
        text = f"\N{GREEK SMALL LETTER RHO} {rho}\nPCS {pcs}\nn = {cell.systems}"
        panel.text(x, y, text, ha="center", va="center", fontsize=7, linespacing=1.3)
    panel.set_xlim(-0.5, len(columns) - 0.5)
    panel.set_ylim(height - 0.5, -0.5)
    panel.set_xticks(range(len(columns)), columns)
    panel.set_yticks(range(len(rows)), rows)
    panel.tick_params(length=0, labeltop=True, labelbottom=False)
    panel.grid(visible=False)
    panel.spines[:].set_visible(False)


def _number(value: float | None) -> str:
    return "\N{EN DASH}" if value is None else f"{value:.2f}"
