"""All figures of an analysis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from matplotlib import rc_context

from pii_bench.analysis.figures.curves import chosen, draw_curves, draw_tradeoff
from pii_bench.analysis.figures.rows import (
    SETS,
    draw_agreement,
    draw_categories,
    draw_drops,
    draw_robustness,
    draw_types,
)
from pii_bench.analysis.figures.style import STYLE, best, save, shown
from pii_bench.analysis.recall import Rule
from pii_bench.analysis.runs import preferred
from pii_bench.ranking.rows import Source
from pii_bench.tasks import Task

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from matplotlib.figure import Figure

    from pii_bench.analysis.agreement import Agreement
    from pii_bench.analysis.means import Headline
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
    chosen = preferred(found)
    if all(run.source is Source.PUBLISHED for run in chosen):
        return []
    systems = {(run.source, run.model, run.strategy) for run in chosen}
    return [
        each
        for each in analysis.headlines
        if (each.run.task, each.metric) == (task, metric)
        and each.run.dataset in SETS
        and (each.run.source, each.run.model, each.run.strategy) in systems
    ]
