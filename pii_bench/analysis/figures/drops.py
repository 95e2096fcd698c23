"""How much lower systems are on hard and on distract, and on versions of samples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from pii_bench.analysis.figures.style import BAND, GREY, SERIES, WIDTH, key, names_of
from pii_bench.analysis.headlines import HARDER
from pii_bench.analysis.runs import BASE
from pii_bench.ranking.rows import Source

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes

    from pii_bench.analysis.figures.style import Shown
    from pii_bench.analysis.headlines import Headline
    from pii_bench.analysis.robustness import Robustness
    from pii_bench.analysis.runs import RunName


SETS: Final = ("+".join(BASE), *HARDER)

_ROW: Final = 0.2
"""Height of a system in inches."""

_STEP: Final = 0.14
"""Between two marks, of the height of a row: they stay apart where figures are alike."""

_ROW_OF_KIND: Final = 0.12
"""Height of a mark in inches."""

_COLUMNS: Final = 3


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
        published = each.run.source is Source.PUBLISHED
        key = published, each.run.model, each.run.strategy
        systems.setdefault(key, {})[each.run.dataset] = each
    rows = sorted(
        systems.values(),
        key=lambda sets: (
            sets[SETS[0]].run.source is Source.PUBLISHED,
            sets[SETS[0]].run.oracle,
            -sets[SETS[0]].value,
        ),
    )
    figure = Figure(figsize=(WIDTH, _ROW * len(rows) + 0.85), layout="constrained")
    panel = figure.subplots()
    for place, sets in enumerate(rows):
        _draw_system(panel, place, sets)
    _label(panel, [sets[SETS[0]] for sets in rows])
    panel.set_xlabel(label)
    figure.legend(handles=_keys(headlines), loc="outside upper center", ncols=len(SETS))
    return figure


def _draw_system(panel: Axes, place: int, sets: Mapping[str, Headline]) -> None:
    values = [each.value for each in sets.values()]
    panel.hlines(place, min(values), max(values), color=GREY, linewidth=0.7, zorder=1)
    for number, name in enumerate(SETS):
        if (each := sets.get(name)) is None:
            continue
        series, height = SERIES[number], place + _STEP * (number - 1)
        ours = each.run.source is not Source.PUBLISHED
        panel.plot(
            each.value,
            height,
            color=series.color,
            marker=series.marker,
            markerfacecolor=series.color if ours else "white",
            markeredgecolor="white" if ours else series.color,
            markeredgewidth=0.4 if ours else 1.0,
            clip_on=False,
            zorder=3,
        )
        if each.interval_low is not None and each.interval_high is not None:
            ends = each.interval_low, each.interval_high
            panel.hlines(height, *ends, color=series.color, linewidth=2.2, alpha=0.45, zorder=2)


def _label(panel: Axes, bases: Sequence[Headline]) -> None:
    runs = [each.run for each in bases]
    ours, theirs = ([r for r in runs if _is_published(r) is side] for side in (False, True))
    names = {**names_of(ours), **names_of(theirs)}
    panel.set_yticks(range(len(runs)), [names[run] for run in runs])
    panel.tick_params(axis="y", length=0)
    panel.set_ylim(len(runs) - 0.5, -0.5)
    panel.set_xlim(0, 1)
    panel.grid(visible=False, axis="y")
    panel.grid(visible=True, axis="x")
    published = [place for place, run in enumerate(runs) if _is_published(run)]
    if published:
        ends = min(published) - 0.5, max(published) + 0.5
        panel.axhspan(*ends, color=BAND, linewidth=0, zorder=0)
        panel.text(0.005, min(published), "published", va="center", fontsize=6.5, color=GREY)


def _is_published(run: RunName) -> bool:
    return run.source is Source.PUBLISHED


def _keys(headlines: Sequence[Headline]) -> list[Line2D]:
    """One per set, with the samples that ours are means of."""
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
        if any(each.run.dataset == name for each in headlines)
    ]


def draw_robustness(found: Sequence[Robustness], systems: Shown, label: str) -> Figure:
    """The drops of systems by kind, with their intervals.

    Args:
        found: of one task and metric.
        systems: what is shown, in their order.
        label: of the metric.
    """
    kinds = list(dict.fromkeys(each.kind for each in found if each.run in systems.runs))
    count = len(systems.runs)
    figure = Figure(
        figsize=(WIDTH, _ROW_OF_KIND * (count + 1) * len(kinds) + 1.1), layout="constrained"
    )
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
