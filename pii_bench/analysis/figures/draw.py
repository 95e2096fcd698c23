"""All figures of an analysis; those of curves and of the tradeoff are drawn here."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from math import ceil, floor, nan
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

    from matplotlib.axes import Axes

    from pii_bench.analysis.agreement import Agreement
    from pii_bench.analysis.means import CurvePoint, Factor, Headline, Tradeoff
    from pii_bench.analysis.results import Analysis
    from pii_bench.analysis.runs import RunName


_METRICS: Final = (
    (Task.DETECTION, "strict_f1", "Strict-F1"),
    (Task.DETECTION, "ent_f1", "Ent-F1"),
    (Task.QUERY_RELATED, "f1", "F1"),
    (Task.MASKING, "h", "H"),
    (Task.MASKING, "f1", "F1"),
    (Task.REWRITE, "h", "H"),
)
# Metrics that every system has, also those that name no subjects.
_RULES: Final = ((Task.DETECTION, "ent_f1", Rule.TYPED), (Task.QUERY_RELATED, "f1", Rule.TEXT))

_DODGE: Final = 0.07
"""Distance between the points of two systems in one bin, as a fraction of its width."""

_LEGEND_COLUMNS: Final = 3
_MAX_TRADEOFFS: Final = 20
_H_LEVELS: Final = (0.2, 0.4, 0.6, 0.8)


def draw_all(analysis: Analysis) -> list[tuple[str, str, Figure]]:
    """Return every figure that shows a run of ours, after its name and caption."""
    with rc_context(dict(STYLE)):
        return list(_figures(analysis))


def _figures(analysis: Analysis) -> Iterator[tuple[str, str, Figure]]:
    if tradeoffs := chosen(analysis.tradeoffs):
        dataset = tradeoffs[0].run.dataset
        caption = f"Protection against retention: {dataset}"
        yield f"tradeoff-{dataset}", caption, draw_tradeoff(tradeoffs)
    for task, metric, label in _METRICS:
        suffix, what = f"{task}-{metric.replace('_', '-')}", f"{task}, {label}"
        points = [p for p in analysis.curves if p.run.task is task and p.metric == metric]
        if systems := shown(points, task, metric):
            caption = f"Score by size of the sample: {what}"
            yield f"curves-{suffix}", caption, draw_curves(points, systems, label)
        if headlines := _dropped(analysis, task, metric):
            caption = f"Drop on the harder sets: {what}"
            yield f"drops-{suffix}", caption, draw_drops(headlines, label)
        drops = [d for d in analysis.robustness if d.run.task is task and d.metric == metric]
        if systems := best((drop.run, drop.samples, drop.original) for drop in drops):
            caption = f"Drop on perturbed samples: {what}"
            yield f"robustness-{suffix}", caption, draw_robustness(drops, systems, label)
        agreements = _agreements(analysis, task, metric)
        if any(agreement.source_a != Source.PUBLISHED for agreement in agreements):
            caption = f"Agreement between datasets: {what}"
            yield f"agreement-{suffix}", caption, draw_agreement(agreements)
    for task, metric, rule in _RULES:
        systems = shown(analysis.curves, task, metric)
        shares = [s for s in analysis.recall if s.run in systems and s.rule is rule]
        if types := [share for share in shares if share.level == "type"]:
            yield f"types-{task}", f"Scores by type: {task}", draw_types(types, systems)
        if categories := [share for share in shares if share.level == "category"]:
            caption = f"Recall by category: {task}"
            yield f"categories-{task}", caption, draw_categories(categories, systems)


def _agreements(analysis: Analysis, task: Task, metric: str) -> list[Agreement]:
    """Return the agreements between single sets, over at least two systems."""
    return [
        agreement
        for agreement in analysis.agreement
        if (agreement.task, agreement.metric) == (task, metric)
        and "+" not in agreement.dataset_a + agreement.dataset_b
        and agreement.systems > 1
    ]


def _dropped(analysis: Analysis, task: Task, metric: str) -> list[Headline]:
    """Return the headlines of all systems that have drops; none if all of them are published."""
    kept = preferred(d.run for d in analysis.drops if d.run.task is task and d.metric == metric)
    if all(run.source is Source.PUBLISHED for run in kept):
        return []
    systems = {(run.source, run.model, run.strategy) for run in kept}
    return [
        headline
        for headline in analysis.headlines
        if (headline.run.task, headline.metric) == (task, metric)
        and headline.run.dataset in SETS
        and (headline.run.source, headline.run.model, headline.run.strategy) in systems
    ]


def draw_curves(points: Sequence[CurvePoint], systems: Sequence[RunName], label: str) -> Figure:
    """Draw the curves of systems, with their intervals and the number of samples in each bin.

    The points are of one task and one metric, the label. Lines are interrupted at bins without
    samples.
    """
    kept = [point for point in points if point.run in systems]
    factors = [f for f in FACTORS if any(p.factor == f.name for p in kept)]
    rows = ceil(len(factors) / 2)
    figure = Figure(figsize=(WIDTH, 2.25 * rows), layout="constrained")
    panels = figure.subplots(rows, 2, sharey=True, squeeze=False).ravel()
    for factor, panel in zip(factors, panels, strict=False):
        _shade(panel, factor, points, systems)
        _draw_panel(panel, factor, [p for p in kept if p.factor == factor.name], systems)
    for panel in panels[::2]:
        panel.set_ylabel(f"{label}, {systems[0].dataset}")
    lowest, highest = _limits(kept)
    panels[0].set_ylim(lowest, highest)
    panels[0].yaxis.set_major_locator(MultipleLocator(0.2 if lowest < 0.5 else 0.1))
    handles = keys_of(systems)
    if len(factors) < len(panels):
        panels[-1].set_axis_off()
        panels[-1].legend(handles=handles, loc="center")
    else:
        figure.set_figheight(figure.get_figheight() + 0.2 * ceil(len(handles) / _LEGEND_COLUMNS))
        figure.legend(handles=handles, loc="outside upper center", ncols=_LEGEND_COLUMNS)
    return figure


def _shade(
    panel: Axes, factor: Factor, points: Sequence[CurvePoint], systems: Sequence[RunName]
) -> None:
    """For sets taken as one, mark the bins whose samples are mostly from the last set."""
    run = systems[0]
    last = run.dataset.rpartition("+")[2]
    part_run = replace(run, dataset=last)
    own = [point for point in points if point.factor == factor.name]
    whole = {point.low: point.samples for point in own if point.run == run}
    part = {point.low: point.samples for point in own if point.run == part_run}
    bins = [low for low, count in whole.items() if 2 * part.get(low, 0) > count]
    if last == run.dataset or not bins:
        return
    ends = factor.place_of(min(bins)) - 0.5, factor.place_of(max(bins)) + 0.5
    panel.axvspan(*ends, color=BAND, linewidth=0, zorder=0)
    note(panel, last, (sum(ends) / 2, 1), (0, 1))


def _draw_panel(
    panel: Axes, factor: Factor, points: Sequence[CurvePoint], systems: Sequence[RunName]
) -> None:
    for number, run in enumerate(systems):
        series = SERIES[number]
        shift = _DODGE * (number - (len(systems) - 1) / 2)
        own = {factor.place_of(point.low): point for point in points if point.run == run}
        places = range(min(own), max(own) + 1)
        # A value that is not a number interrupts the line.
        values = [own[place].value if place in own else nan for place in places]
        at = [place + shift for place in places]
        panel.plot(at, values, **series, markeredgecolor="white", clip_on=False, zorder=3)
        for place, point in own.items():
            if point.interval_low is not None and point.interval_high is not None:
                ends = (point.interval_low, point.interval_high)
                panel.vlines(place + shift, *ends, color=series["color"], linewidth=0.8)
    _label_bins(panel, factor, points)


def _label_bins(panel: Axes, factor: Factor, points: Sequence[CurvePoint]) -> None:
    samples = {factor.place_of(point.low): point.samples for point in points}
    first, last = min(samples), max(samples)
    open_bin = len(factor.ends)
    if factor.counted:
        places = range(first, last + 1)
        panel.set_xticks(places, [f"{p}+" if p == open_bin else f"{p}" for p in places])
    else:
        # A tick between two bins shows the end of the left one.
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


def chosen(tradeoffs: Sequence[Tradeoff]) -> list[Tradeoff]:
    """Choose at most 20 complete runs on the set with most of them, sorted by H, oracles last.

    None if there are fewer than two, since nothing can be compared.
    """
    kept = preferred(tradeoff.run for tradeoff in tradeoffs)
    systems = Counter(run.dataset for run in kept)
    if not systems:
        return []
    dataset = min(systems, key=lambda name: (-systems[name], name))
    own = [each for each in tradeoffs if each.run in kept and each.run.dataset == dataset]

    def order(tradeoff: Tradeoff) -> tuple[bool, float, str, str]:
        run = tradeoff.run
        h = harmonic_mean(tradeoff.protection, tradeoff.retention)
        return run.oracle, -h, run.model, run.strategy

    own.sort(key=order)
    return own[:_MAX_TRADEOFFS] if len(own) > 1 else []


def draw_tradeoff(tradeoffs: Sequence[Tradeoff]) -> Figure:
    """Draw protection against retention, with lines of equal H; oracles are hollow."""
    figure = Figure(figsize=(WIDTH, 4.2), layout="constrained")
    panel = figure.subplots()
    for level in _H_LEVELS:
        retention = np.linspace(level / (2 - level), 1, 100)
        panel.plot(retention, level * retention / (2 * retention - level), color=LIGHT, lw=0.7)
        panel.annotate(f"H {level}", (1, level / (2 - level)), fontsize=6.5, color=GREY)
    names = names_of([tradeoff.run for tradeoff in tradeoffs])
    handles = []
    for number, tradeoff in enumerate(tradeoffs, start=1):
        color = GREY if tradeoff.run.oracle else SERIES[0]["color"]
        face = "white" if tradeoff.run.oracle else color
        point = Line2D([tradeoff.retention], [tradeoff.protection], color=color, linestyle="none")
        point.set(marker="o", markerfacecolor=face, label=f"{number}  {names[tradeoff.run]}")
        handles.append(panel.add_line(point))
        # Labels of neighbours go to different sides: their points are often close.
        shift = ((5, 3), (-11, 3), (5, -8))[number % 3]
        at = tradeoff.retention, tradeoff.protection
        panel.annotate(str(number), at, shift, textcoords="offset points", fontsize=7)
    panel.set_xlim(-0.03, 1.06)
    panel.set_ylim(-0.03, 1.06)
    panel.set_xlabel(f"Retention: related PII that can be read ({tradeoffs[0].run.dataset})")
    panel.set_ylabel("Protection: unrelated PII that cannot be read")
    figure.legend(handles=handles, loc="outside right upper", handlelength=1)
    return figure
