"""All figures of an analysis, among them F1 against each size and protection against retention."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from math import ceil, floor
from typing import TYPE_CHECKING, Final

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MultipleLocator

from pii_bench.analysis.figures.rows import (
    SETS,
    draw_agreement,
    draw_categories,
    draw_drops,
    draw_robustness,
    draw_types,
)
from pii_bench.analysis.figures.style import (
    BAND,
    GREY,
    LIGHT,
    SERIES,
    STYLE,
    WIDTH,
    best,
    keys_of,
    names_of,
    note,
    save,
    shown,
)
from pii_bench.analysis.means import FACTORS
from pii_bench.analysis.recall import Rule
from pii_bench.analysis.runs import preferred
from pii_bench.ranking.rows import Source
from pii_bench.scorer.measures import harmonic_mean
from pii_bench.tasks import Task

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from matplotlib.axes import Axes

    from pii_bench.analysis.agreement import Agreement
    from pii_bench.analysis.figures.style import Shown
    from pii_bench.analysis.means import CurvePoint, Factor, Headline, Tradeoff
    from pii_bench.analysis.results import Analysis


_METRICS: Final = (
    (Task.DETECTION, "strict_f1", "Strict-F1"),
    (Task.DETECTION, "ent_f1", "Ent-F1"),
    (Task.QUERY_RELATED, "f1", "F1"),
    (Task.MASKING, "h", "H"),
    (Task.MASKING, "f1", "F1"),
    (Task.REWRITE, "h", "H"),
)
# By these every system can be compared, also those that name no subjects.
_RULES: Final = ((Task.DETECTION, "ent_f1", Rule.TYPED), (Task.QUERY_RELATED, "f1", Rule.TEXT))

_DODGE: Final = 0.07
"""Between the points of two systems in one bin, of the width of a bin."""

_KEYS: Final = 3
"""Of the legend, in one line."""

_MOST: Final = 20
_LEVELS: Final = (0.2, 0.4, 0.6, 0.8)


def draw_all(analysis: Analysis, folder: Path) -> list[Path]:
    """Draw and write every figure that there is something of ours for.

    Raises:
        ResultsError: a file cannot be written.
    """
    paths: list[Path] = []
    with rc_context(dict(STYLE)):
        for name, figure in _figures(analysis):
            paths += save(figure, folder, name)
    return paths


def _figures(analysis: Analysis) -> Iterator[tuple[str, Figure]]:
    if tradeoffs := chosen(analysis.tradeoffs):
        yield f"tradeoff-{tradeoffs[0].run.dataset}", draw_tradeoff(tradeoffs)
    for task, metric, label in _METRICS:
        suffix = f"{task}-{metric.replace('_', '-')}"
        points = [p for p in analysis.curves if p.run.task is task and p.metric == metric]
        if systems := shown(points, task, metric):
            yield f"curves-{suffix}", draw_curves(points, systems, label)
        if headlines := _dropped(analysis, task, metric):
            yield f"drops-{suffix}", draw_drops(headlines, label)
        versions = [
            each for each in analysis.robustness if (each.run.task, each.metric) == (task, metric)
        ]
        if systems := best((each.run, each.samples, each.original) for each in versions):
            yield f"robustness-{suffix}", draw_robustness(versions, systems, label)
        agreements = _agreeing(analysis, task, metric)
        if any(each.source_a != Source.PUBLISHED for each in agreements):
            yield f"agreement-{suffix}", draw_agreement(agreements)
    yield from _shares(analysis)


def _agreeing(analysis: Analysis, task: Task, metric: str) -> list[Agreement]:
    return [
        each
        for each in analysis.agreement
        # Of sets taken as one, the parts are there.
        if (each.task, each.metric) == (task, metric)
        and "+" not in each.dataset_a + each.dataset_b
        # One system agrees with itself.
        and each.systems > 1
    ]


def _shares(analysis: Analysis) -> Iterator[tuple[str, Figure]]:
    for task, metric, rule in _RULES:
        if not (systems := shown(analysis.curves, task, metric)):
            continue
        shares = [s for s in analysis.recall if s.run in systems.runs and s.rule is rule]
        if types := [share for share in shares if share.level == "type"]:
            yield f"types-{task}", draw_types(types, systems)
        if categories := [share for share in shares if share.level == "category"]:
            yield f"categories-{task}", draw_categories(categories, systems)


def _dropped(analysis: Analysis, task: Task, metric: str) -> list[Headline]:
    """The headlines behind the drops of the published systems and ours, if any are ours."""
    found = [drop.run for drop in analysis.drops if (drop.run.task, drop.metric) == (task, metric)]
    kept = preferred(found)
    if all(run.source is Source.PUBLISHED for run in kept):
        return []
    systems = {(run.source, run.model, run.strategy) for run in kept}
    return [
        each
        for each in analysis.headlines
        if (each.run.task, each.metric) == (task, metric)
        and each.run.dataset in SETS
        and (each.run.source, each.run.model, each.run.strategy) in systems
    ]


def draw_curves(points: Sequence[CurvePoint], systems: Shown, label: str) -> Figure:
    """The curves of some systems, with their intervals and the samples in each bin.

    A line stops at a bin without samples.

    Args:
        points: of one task and metric.
        systems: which of them are drawn.
        label: of the metric.
    """
    kept = [point for point in points if point.run in systems.runs]
    factors = [f for f in FACTORS.values() if any(p.factor == f.name for p in kept)]
    figure = Figure(figsize=(WIDTH, 2.25 * ((len(factors) + 1) // 2)), layout="constrained")
    panels = figure.subplots((len(factors) + 1) // 2, 2, sharey=True, squeeze=False).ravel()
    for factor, panel in zip(factors, panels, strict=False):
        _shade(panel, factor, points, systems)
        _draw_panel(panel, factor, [p for p in kept if p.factor == factor.name], systems)
    for panel in panels[::2]:
        panel.set_ylabel(f"{label}, {systems.dataset}")
    panels[0].set_ylim(*_limits(kept))
    panels[0].yaxis.set_major_locator(MultipleLocator(0.2 if _limits(kept)[0] < 0.5 else 0.1))
    handles = keys_of(systems.runs)
    if len(factors) < len(panels):
        panels[-1].set_axis_off()
        panels[-1].legend(handles=handles, loc="center")
    else:
        figure.set_figheight(figure.get_figheight() + 0.2 * ceil(len(handles) / _KEYS))
        figure.legend(handles=handles, loc="outside upper center", ncols=_KEYS)
    return figure


def _shade(panel: Axes, factor: Factor, points: Sequence[CurvePoint], systems: Shown) -> None:
    """Mark the bins whose samples are mostly of the last of several sets taken as one."""
    run = systems.runs[0]
    last = run.dataset.rpartition("+")[2]
    whole, part = (
        {p.low: p.samples for p in points if p.factor == factor.name and p.run == each}
        for each in (run, replace(run, dataset=last))
    )
    bins = [low for low, count in whole.items() if 2 * part.get(low, 0) > count]
    if last == run.dataset or not bins:
        return
    ends = factor.place_of(min(bins)) - 0.5, factor.place_of(max(bins)) + 0.5
    panel.axvspan(*ends, color=BAND, linewidth=0, zorder=0)
    note(panel, last, (sum(ends) / 2, 1), (0, 1))


def _draw_panel(panel: Axes, factor: Factor, points: Sequence[CurvePoint], systems: Shown) -> None:
    for number, run in enumerate(systems.runs):
        series = SERIES[number]
        shift = _DODGE * (number - (len(systems.runs) - 1) / 2)
        own = [point for point in points if point.run == run]
        for part in _unbroken(own, factor):
            places = [factor.place_of(point.low) + shift for point in part]
            values = [point.value for point in part]
            panel.plot(
                places,
                values,
                color=series.color,
                marker=series.marker,
                markeredgecolor="white",
                clip_on=False,
                linestyle=series.dashes,
                zorder=3,
            )
        for point in own:
            if point.interval_low is not None and point.interval_high is not None:
                place = factor.place_of(point.low) + shift
                ends = (point.interval_low, point.interval_high)
                panel.vlines(place, *ends, color=series.color, linewidth=0.8)
    _label_bins(panel, factor, points)


def _unbroken(points: Sequence[CurvePoint], factor: Factor) -> Iterator[list[CurvePoint]]:
    part: list[CurvePoint] = []
    for point in points:
        if part and factor.place_of(point.low) > factor.place_of(part[-1].low) + 1:
            yield part
            part = []
        part.append(point)
    if part:
        yield part


def _label_bins(panel: Axes, factor: Factor, points: Sequence[CurvePoint]) -> None:
    samples = {factor.place_of(point.low): point.samples for point in points}
    first, last = min(samples), max(samples)
    open_bin = len(factor.ends)
    if factor.counted:
        places = range(first, last + 1)
        panel.set_xticks(places, [f"{p}+" if p == open_bin else f"{p}" for p in places])
    else:
        # A number between two bins is the last of the one on its left.
        ends = range(max(first - 1, 0), min(last + 1, open_bin))
        panel.set_xticks([p + 0.5 for p in ends], [f"{factor.ends[p]}" for p in ends])
    panel.set_xlim(first - 0.6, last + 0.6)
    panel.set_xlabel(factor.label, labelpad=11)
    for place, count in samples.items():
        note(panel, f"{count}", (place, 0), (0, -14))
    note(panel, "n", (0, 0), (-4, -14), x_data=False, align="right")


def _limits(points: Sequence[CurvePoint]) -> tuple[float, float]:
    lows = [p.value if p.interval_low is None else p.interval_low for p in points]
    highs = [p.value if p.interval_high is None else p.interval_high for p in points]
    return max(floor(10 * min(lows) - 0.2) / 10, 0), min(ceil(10 * max(highs) + 0.2) / 10, 1.02)


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
