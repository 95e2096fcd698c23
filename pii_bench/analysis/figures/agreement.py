"""Spearman's rho and PCS of every two datasets, as tables of tinted cells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from pii_bench.analysis.figures.style import WIDTH
from pii_bench.ranking.rows import Source

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from pii_bench.analysis.agreement import Agreement

_CELL: Final = 0.62
"""Height of a cell in inches."""


def draw_agreement(agreements: Sequence[Agreement]) -> Figure:
    """Tables of ours, of the published figures, and of ours against them, where there are any.

    Each cell holds rho, the mean PCS and the number of systems. The darker, the larger rho; a
    cell without rho is white.

    Args:
        agreements: of one task and metric, between single sets.
    """
    tables = {
        "Ours": [
            a for a in agreements if not _published(a.source_a) and not _published(a.source_b)
        ],
        "Published": [a for a in agreements if _published(a.source_a) and _published(a.source_b)],
        "Ours (rows) and published": [
            a for a in agreements if not _published(a.source_a) and _published(a.source_b)
        ],
    }
    shown = {title: cells for title, cells in tables.items() if cells}
    widths = [len({cell.dataset_b for cell in cells}) for cells in shown.values()]
    heights = [len({cell.dataset_a for cell in cells}) for cells in shown.values()]
    figure = Figure(
        figsize=(min(WIDTH, 1.1 * sum(widths) + 0.8), _CELL * max(heights) + 0.7),
        layout="constrained",
    )
    panels = figure.subplots(1, len(shown), squeeze=False, width_ratios=widths)[0]
    for (title, cells), panel in zip(shown.items(), panels, strict=True):
        _draw_table(panel, title, cells, max(heights))
    return figure


def _draw_table(panel: Axes, title: str, cells: Sequence[Agreement], height: int) -> None:
    rows = list(dict.fromkeys(cell.dataset_a for cell in cells))
    columns = list(dict.fromkeys(cell.dataset_b for cell in cells))
    for cell in cells:
        x, y = columns.index(cell.dataset_b), rows.index(cell.dataset_a)
        # From white to a grey on which black letters can be read.
        tint = "white" if cell.rho is None else str(1 - 0.35 * max(cell.rho, 0))
        panel.add_patch(
            Rectangle(
                (x - 0.5, y - 0.5),
                1,
                1,
                facecolor=tint,
                edgecolor="black",
                clip_on=False,
                linewidth=0.5,
            )
        )
        panel.text(x, y, _text(cell), ha="center", va="center", fontsize=7, linespacing=1.3)
    panel.set_xlim(-0.5, len(columns) - 0.5)
    panel.set_ylim(height - 0.5, -0.5)
    panel.set_xticks(range(len(columns)), columns)
    panel.set_yticks(range(len(rows)), rows)
    panel.tick_params(length=0, labeltop=True, labelbottom=False)
    panel.grid(visible=False)
    panel.spines[:].set_visible(False)
    panel.set_xlabel(title)


def _text(cell: Agreement) -> str:
    rho = "\N{EN DASH}" if cell.rho is None else f"{cell.rho:.2f}"
    pcs = "\N{EN DASH}" if cell.pcs is None else f"{cell.pcs:.2f}"
    return f"\N{GREEK SMALL LETTER RHO} {rho}\nPCS {pcs}\nn = {cell.systems}"


def _published(source: str) -> bool:
    return source == Source.PUBLISHED
