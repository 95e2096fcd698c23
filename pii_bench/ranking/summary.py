"""A run in a few lines: its headlines next to a ladder of trivial systems and published figures."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING, Final

from tabulate import tabulate

from pii_bench.escaping import markdown
from pii_bench.ranking.source import Source
from pii_bench.tasks import Task

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from pii_bench.ranking.rows import Row

HEADLINES: Final[Mapping[Task, str]] = {
    Task.DETECTION: "Strict-F1, or Ent-F1 in brackets where no subjects are named",
    Task.QUERY_RELATED: "F1",
    Task.MASKING: "H; published: F1 in brackets",
}

LADDER: Final[Mapping[tuple[str, str], str]] = {
    ("gold", "none"): "mask everything",
    ("gold", "all"): "mask nothing",
    ("gold", "random"): "choose at random",
    ("bilstm-crf", "gold"): "told what is needed",
}
"""Reference systems that show how much a figure means: (model, strategy) to what they do."""

_WIDEST_NAME: Final = 44


def summarise(
    rows: Sequence[Row], ran: Collection[tuple[str, str, str]], tasks: Iterable[Task]
) -> str:
    """A table for each task, and what the figures mean in words.

    Args:
        rows: of the leaderboard.
        ran: model, strategy and dataset of what was run.
        tasks: those to show.
    """
    own = [
        row
        for row in rows
        if row.source is Source.RUN and (row.model, row.strategy, row.dataset) in ran
    ]
    datasets = list(dict.fromkeys(dataset for _, _, dataset in ran))
    own.sort(key=lambda row: datasets.index(row.dataset))
    parts = []
    for task in tasks:
        shown = [row for row in own if row.task is task]
        if shown:
            of_task = [row for row in rows if row.task is task and row.dataset in datasets]
            parts.append(f"{task} ({HEADLINES[task]})\n\n{_table(shown, of_task, datasets)}\n")
    if meaning := _meaning(own, rows):
        parts.append(meaning + "\n")
    return "\n".join(parts)


def _table(own: Sequence[Row], rows: Sequence[Row], datasets: Sequence[str]) -> str:
    lines: dict[str, dict[str, str]] = {}
    for row in own:
        lines.setdefault(_name(row), {})[row.dataset] = _cell(row)
    for row in rows:
        what = LADDER.get((row.model, row.strategy))
        if row.source is Source.REFERENCE and what is not None and row.task is not Task.DETECTION:
            lines.setdefault(f"{what} ({_name(row)})", {})[row.dataset] = _cell(row)
        if row.source is Source.HUMAN:
            lines.setdefault("people, each alone", {})[row.dataset] = _cell(row)
        if row.source is Source.READING:
            lines.setdefault("blind readers (a large language model)", {})[row.dataset] = _cell(row)
    published = "best published, on the paper's data"
    for dataset in datasets:
        theirs = [
            row
            for row in rows
            if row.source is Source.PUBLISHED and row.dataset == dataset and not row.oracle
        ]
        if theirs:
            lines.setdefault(published, {})[dataset] = _cell(max(theirs, key=_figure))
    table = [
        [name[:_WIDEST_NAME], *(cells.get(each, "") for each in datasets)]
        for name, cells in lines.items()
    ]
    align = ("left", *("right" for _ in datasets))
    return tabulate(
        table, headers=["", *datasets], colalign=align, tablefmt="simple", disable_numparse=True
    )


def _name(row: Row) -> str:
    name = row.model if row.task is Task.DETECTION else f"{row.model}+{row.strategy}"
    return markdown(f"{name}, oracle" if row.source is Source.RUN and row.oracle else name)


def _cell(row: Row) -> str:
    if row.headline is None:
        value = row.metrics.get(_second(row.task))
        text = "-" if value is None else f"({value:.3f})"
    else:
        text = f"{row.headline:.3f}"
    partial = row.source.is_system and not row.complete
    return f"{text} {row.scored}/{row.gold}" if partial else text


def _second(task: Task) -> str:
    return "f1" if task is Task.MASKING else "ent_f1"


def _figure(row: Row) -> float:
    return row.metrics.get(_second(row.task), 0.0) if row.headline is None else row.headline


def _meaning(own: Sequence[Row], rows: Sequence[Row]) -> str:
    """Two sentences on masking; empty where it was not run, or by several systems."""
    masking = [row for row in own if row.task is Task.MASKING and row.headline is not None]
    if len({(row.model, row.strategy) for row in masking}) != 1:
        return ""
    protection = fmean(row.metrics["protection"] for row in masking)
    retention = fmean(row.metrics["retention"] for row in masking)
    first = (
        f"Of the values that a query does not need, {1 - protection:.0%} can still be read.\n"
        f"Of those that it needs, {1 - retention:.0%} are hidden."
    )
    datasets = {row.dataset for row in masking}
    ladder = {
        LADDER[row.model, row.strategy]: row
        for row in rows
        if row.source is Source.REFERENCE
        and row.task is Task.MASKING
        and (row.model, row.strategy) in LADDER
        and row.dataset == masking[0].dataset
    }
    ends = [ladder.get("choose at random"), ladder.get("told what is needed")]
    figures = [row.headline for row in ends if row is not None and row.headline is not None]
    if len(figures) < len(ends):
        return first
    where = f" on {masking[0].dataset}" if len(datasets) > 1 else ""
    return (
        f"{first}\nH{where} is {masking[0].headline:.3f}: choosing at random gives "
        f"{figures[0]:.3f}, and being told what is needed {figures[1]:.3f}."
    )
