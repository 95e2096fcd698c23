"""The leaderboard as HTML tables, complete without any script; the script sorts and filters."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlencode

from pii_bench.analysis.report.data import address
from pii_bench.datasets.catalog import DATASETS
from pii_bench.escaping import html_text
from pii_bench.ranking.render import SHOWN, failures, figure
from pii_bench.ranking.source import Source, source_marks

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pii_bench.analysis.report.data import Address, Report
    from pii_bench.ranking.rows import Row


@dataclass(frozen=True, slots=True)
class _Cell:
    """One cell of a row.

    Attributes:
        column: its heading.
        content: HTML.
        value: what is sorted by; None where it is unknown.
        kind: its classes.
        first: the direction that brings the best to the top, or the beginning of the alphabet.
    """

    column: str
    content: str
    value: str | float | None
    kind: str = ""
    first: Literal["ascending", "descending"] = "ascending"


def render_tables(report: Report) -> str:
    """A section with a table for each dataset and task.

    Datasets with rows of ours come first, and those of the catalog in its order.
    """
    places = {name: place for place, name in enumerate(DATASETS)}
    ours = {row.dataset for row in report.rows if row.source is not Source.PUBLISHED}
    rows = sorted(
        report.rows,
        key=lambda row: (
            row.dataset not in ours,
            places.get(row.dataset, len(places)),
            row.dataset,
        ),
    )
    sections = []
    groups = groupby(rows, key=lambda row: (row.dataset, row.task))
    for number, ((dataset, task), group) in enumerate(groups):
        name = html_text(dataset)
        sections.append(
            f'<section class="board" data-dataset="{name}" data-task="{task}">\n'
            f"<h3>{name} <span>{task}</span></h3>\n"
            f'<div class="scroll" tabindex="0" role="region" aria-label="{name}, {task}">'
            f'<table id="table-{number}">{_table(list(group), report.names)}</table></div>\n'
            "</section>"
        )
    return "\n".join(sections)


def render_signatures(report: Report) -> str:
    """The lines that reproduce our rows."""
    lines = [f"<li><code>{html_text(row.signature)}</code>" for row in report.rows if row.signature]
    return f"<ul>{''.join(lines)}</ul>" if lines else ""


def _table(rows: Sequence[Row], names: Mapping[Address, str]) -> str:
    body = [list(_cells(row, names)) for row in rows]
    # No column without anything in it.
    columns = enumerate(zip(*body, strict=True))
    kept = [place for place, cells in columns if any(cell.content for cell in cells)]
    head = "".join(
        f'<th scope="col"{_class(cell.kind)}>'
        f'<button type="button" data-first="{cell.first}">{cell.column}</button></th>'
        for cell in (body[0][place] for place in kept)
    )
    lines = "\n".join(
        f'<tr data-source="{row.source}"{_class(_kind(row))}>'
        f"{''.join(_render(cells[place]) for place in kept)}</tr>"
        for row, cells in zip(rows, body, strict=True)
    )
    return f"<thead><tr>{head}</tr></thead>\n<tbody>\n{lines}\n</tbody>"


def _cells(row: Row, names: Mapping[Address, str]) -> Iterator[_Cell]:
    yield _Cell("#", str(row.rank or ""), row.rank, "num rank")
    yield _Cell("Model", _model(row, names), row.model, "model")
    yield _Cell("Strategy", html_text(row.strategy), row.strategy, "strategy")
    for name, label in SHOWN[row.task].items():
        kind = "num headline" if name == row.headline_name else "num"
        yield _Cell(label, figure(row, name), row.metrics.get(name), kind, "descending")
    low = row.interval.low if row.interval else None
    yield _Cell("95 % interval", _interval(row), low, "interval", "descending")
    detectable = "" if row.detectable is None else f"{row.detectable:.3f}"
    yield _Cell("Detectable", detectable, row.detectable, "num")
    scored = "" if row.gold is None else f"{row.scored}/{row.gold}"
    yield _Cell("Scored", scored, row.scored, "num", "descending")
    failed = sum(rate for status, rate in (row.rates or {}).items() if not status.answered)
    known = None if row.rates is None else failed
    yield _Cell("Failures", html_text(failures(row)), known)
    recipients = row.unmasked_text_to
    yield _Cell("Unmasked text goes to", html_text(recipients), recipients or None)
    yield _Cell("Source", _source(row), row.source)


def _render(cell: _Cell) -> str:
    value = "" if cell.value is None else f' data-value="{html_text(str(cell.value))}"'
    return f"<td{_class(cell.kind)}{value}>{cell.content}</td>"


def _kind(row: Row) -> str:
    return "ours" if row.source.is_system else "published"


def _model(row: Row, names: Mapping[Address, str]) -> str:
    name = names.get(address(row))
    if name is None:
        return html_text(row.model)
    state = urlencode({"set": row.dataset, "by": row.task, "a": name}, errors="replace")
    return f'<a href="#{html_text(state)}" title="show its samples">{html_text(row.model)}</a>'


def _interval(row: Row) -> str:
    """The interval in figures, and between 0 and 1 with the headline in it."""
    if row.interval is None or row.headline is None:
        return ""
    low, mean, high = (100 * each for each in (row.interval.low, row.headline, row.interval.high))
    return (
        '<svg viewBox="-3 0 106 10" width="106" height="10" aria-hidden="true">'
        '<path d="M0 1v8M0 5h100M50 3.5v3M100 1v8"/>'
        f'<line x1="{low:.1f}" x2="{high:.1f}" y1="5" y2="5"/>'
        f'<circle cx="{mean:.1f}" cy="5" r="2"/></svg>'
        f"<span>{row.interval.low:.3f} to {row.interval.high:.3f}</span>"
    )


def _source(row: Row) -> str:
    note = f' title="{html_text(row.note)}"' if row.note else ""
    return " ".join(f'<span class="badge {mark}"{note}>{mark}</span>' for mark in source_marks(row))


def _class(kind: str) -> str:
    return f' class="{kind}"' if kind else ""
