"""HTML pages without external resources, with tables that a script sorts and filters.

The tables are complete without the script. The content security policy allows only this script
and no connection.
"""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeAlias
from urllib.parse import urlencode

import pii_bench
from pii_bench.datasets.catalog import DATASETS
from pii_bench.escaping import html_text
from pii_bench.ranking.render import SHOWN, figure, not_ok
from pii_bench.ranking.rows import Source, source_marks, system_name
from pii_bench.systems.base import THIS_MACHINE, UNKNOWN_RECIPIENT
from pii_bench.tasks import Status, Task

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pii_bench.ranking.rows import Row
    from pii_bench.ranking.scores import Interval

Address: TypeAlias = "tuple[Source, str, str, str, Task]"
"""The key of a row: source, model, strategy, dataset and task."""

ASSETS: Final = Path(__file__).with_name("assets")
SCRIPTS: Final = tuple(ASSETS / name for name in ("state.js", "tables.js"))


def address(row: Row) -> Address:
    """Return the key of a row."""
    return row.source, row.model, row.strategy, row.dataset, row.task


def render(
    rows: Sequence[Row],
    *,
    kind: str,
    lead: str,
    links: Mapping[str, str],
    main: str,
    scripts: Sequence[Path],
    notes: str = "",
    data: str = "{}",
) -> str:
    """Return the HTML of a page.

    Args:
        rows: their signatures are listed at the end.
        kind: the title.
        lead: HTML, a sentence about the page.
        links: id of a section to its heading.
        main: HTML, the sections.
        scripts: joined to one script, in this order.
        notes: HTML under the title.
        data: JSON without `<`.
    """
    style = (ASSETS / "page.css").read_text(encoding="utf-8")
    parts = [path.read_text(encoding="utf-8") for path in scripts]
    script = '"use strict";\n{\n' + "\n".join(parts) + "}\n"
    links = {**links, "signatures": "Signatures"}
    signatures = dict.fromkeys(row.signature for row in rows if row.signature)
    listed = "".join(f"<li><code>{html_text(signature)}</code>" for signature in signatures)
    return fill(
        ASSETS / "page.html",
        {
            "policy": (
                f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
                "img-src data:; base-uri 'none'; form-action 'none'"
            ),
            "style": style,
            "version": html_text(pii_bench.__version__),
            "kind": kind,
            "lead": lead,
            "links": "".join(f'<a href="#{name}">{heading}</a>' for name, heading in links.items()),
            "notes": notes,
            "main": main,
            "signatures": f"<ul>{listed}</ul>" if listed else "",
            "data": data,
            "script": script,
        },
    )


def fill(template: Path, values: Mapping[str, str]) -> str:
    """Fill the placeholders of a template in one pass: those inside values stay."""
    text = template.read_text(encoding="utf-8")
    return re.sub(r"\{\{(\w+)\}\}", lambda match: values[match[1]], text)


def leaderboard_page(rows: Sequence[Row]) -> str:
    """Return the page of the leaderboard."""
    shown = merged(rows)
    return render(
        rows,
        kind="leaderboard",
        lead="How well systems find personal information, and mask what a question does not need.",
        links={"summary": "Summary", "leaderboard": "Leaderboard"},
        main=f"{render_summary(shown)}{render_board(shown, {})}",
        scripts=[*SCRIPTS, ASSETS / "board.js"],
    )


@dataclass(frozen=True, slots=True)
class Shown:
    """A row on a page; `repeated` is True if a reference row has the same figures."""

    row: Row
    repeated: bool = False


def merged(rows: Sequence[Row]) -> list[Shown]:
    """Return the rows without reference rows for which a run has exactly the same figures."""
    runs = {row.answers_key for row in rows if row.source is Source.RUN}
    repeated = runs & {row.answers_key for row in rows if row.source is Source.REFERENCE}
    return [
        Shown(row, repeated=row.source is Source.RUN and row.answers_key in repeated)
        for row in rows
        if row.source is not Source.REFERENCE or row.answers_key not in repeated
    ]


def leaders(rows: Sequence[Row]) -> list[Row]:
    """Return the ranked masking row with the highest H of each dataset."""
    best = [_best(rows, dataset, Task.MASKING) for dataset in _in_order(rows)]
    return [row for row in best if row is not None]


def render_summary(shown: Sequence[Shown], more: str = "") -> str:
    """Return the summary section: what was run, and the best system of each dataset."""
    ours = [each.row for each in shown if each.row.source.is_system]
    names = _names(ours)
    sets = len(_in_order(ours))
    cards = "".join(_card(row, ours) for row in leaders(ours))
    return (
        '<section id="summary" aria-labelledby="summary-title">\n'
        '<h2 id="summary-title">Summary</h2>\n'
        f"<p>{len(names)} {_many('system', len(names))} on {sets} {_many('dataset', sets)}. "
        f"{_recipients(ours)} Best at masking what a question does not need, without oracles:</p>\n"
        f'<ul class="cards">{cards or "<li>No run of masking is complete.</li>"}</ul>\n'
        f"{more}</section>\n"
    )


def _names(rows: Sequence[Row]) -> set[str]:
    """Return the names of systems; detection counts as one where its model does nothing else."""
    models = {row.model for row in rows if row.task is not Task.DETECTION}
    return {
        system_of(row) for row in rows if row.task is not Task.DETECTION or row.model not in models
    }


def _recipients(ours: Sequence[Row]) -> str:
    """Return HTML sentences on who received unmasked text."""
    # Masking may have two recipients.
    received = {name for row in ours for name in row.unmasked_text_to.split(", ")}
    named = sorted(received - {"", THIS_MACHINE, UNKNOWN_RECIPIENT})
    sentences = [f"Unmasked text was sent to {html_text(', '.join(named))}."] if named else []
    if UNKNOWN_RECIPIENT in received:
        unknown = _names(
            [row for row in ours if UNKNOWN_RECIPIENT in row.unmasked_text_to.split(", ")]
        )
        systems = f"{len(unknown)} {_many('system', len(unknown))}"
        sentences.append(f"Who received the unmasked text of {systems} is not known.")
    return " ".join(sentences) or "No text left this machine."


def _many(noun: str, count: int) -> str:
    return noun if count == 1 else f"{noun}s"


def _card(row: Row, ours: Sequence[Row]) -> str:
    """Return the card of a dataset: its best system, and the shares leaked and hidden."""
    others = []
    for task, label in ((Task.DETECTION, "detection"), (Task.QUERY_RELATED, "query")):
        best = _best(ours, row.dataset, task)
        if best is not None:
            others.append(f"{label}: {html_text(system_of(best))} {best.headline:.3f}")
    between = f" <small>{_bounds(row.interval)}</small>" if row.interval else ""
    return (
        f"<li><h3>{html_text(row.dataset)}</h3>"
        f'<p class="lead-system">{html_text(system_of(row))}</p>'
        f"<p><b>H {row.headline:.3f}</b>{between}</p>"
        f"<p>leaks {1 - row.metrics['protection']:.0%} of what is not needed, "
        f"hides {1 - row.metrics['retention']:.0%} of what is</p>"
        f'<p class="quiet">{"; ".join(others)}</p></li>'
    )


def _best(rows: Sequence[Row], dataset: str, task: Task) -> Row | None:
    """Return the ranked row of a dataset and task with the highest headline."""
    ranked = [r for r in rows if (r.dataset, r.task) == (dataset, task) and r.rank is not None]
    return max(ranked, key=lambda row: row.headline or 0.0, default=None)


def system_of(row: Row) -> str:
    """Return the name of a row's system: only the model if it does both tasks."""
    if row.task is Task.DETECTION or row.model == row.strategy:
        return row.model
    return system_name(row.model, row.strategy)


def _in_order(rows: Sequence[Row]) -> list[str]:
    """Return the datasets of rows, those of the catalog first and in its order."""
    return sorted(dict.fromkeys(row.dataset for row in rows), key=_place)


def _place(dataset: str) -> int:
    """Return the place of a dataset in the catalog; others come last."""
    names = list(DATASETS)
    return names.index(dataset) if dataset in names else len(names)


@dataclass(frozen=True, slots=True)
class _Cell:
    """A cell of a table.

    Attributes:
        column: the heading of its column.
        content: HTML.
        value: the sort key; None if unknown.
        kind: CSS classes.
        first: the direction of the first sort: best first, or alphabetical.
    """

    column: str
    content: str
    value: str | float | None
    kind: str = ""
    first: Literal["ascending", "descending"] = "ascending"


def render_board(shown: Sequence[Shown], names: Mapping[Address, str]) -> str:
    """Return the leaderboard section: an explanation, and a table per dataset and task.

    Datasets with only published rows come last; those of the catalog are in its order. The
    samples of the runs in `names` are on the page.
    """
    ours = {each.row.dataset for each in shown if each.row.source is not Source.PUBLISHED}

    def place(each: Shown) -> tuple[bool, int, str]:
        name = each.row.dataset
        return name not in ours, _place(name), name

    rows = sorted(shown, key=place)
    sections = []
    groups = groupby(rows, key=lambda each: (each.row.dataset, each.row.task))
    for number, ((dataset, task), group) in enumerate(groups):
        name, members = html_text(dataset), list(group)
        sections.append(
            f'<section class="board" data-dataset="{name}" data-task="{task}">\n'
            f"<details><summary><h3>{name} <span>{task}</span></h3> "
            f"<small>{_caption(members)}</small></summary>\n"
            f'<div class="scroll" tabindex="0" role="region" aria-label="{name}, {task}">'
            f'<table id="table-{number}">{_table(members, names)}</table></div>\n'
            "</details></section>"
        )
    return fill(ASSETS / "board.html", {"tables": "\n".join(sections)})


def _caption(members: Sequence[Shown]) -> str:
    """Describe a table: its best row and its size."""
    best = _best([each.row for each in members], members[0].row.dataset, members[0].row.task)
    leader = "" if best is None else f"{html_text(system_of(best))} {best.headline:.3f}, "
    return f"{leader}{len(members)} {_many('row', len(members))}"


def _table(shown: Sequence[Shown], names: Mapping[Address, str]) -> str:
    table = [list(_cells(each, names)) for each in shown]
    # Empty columns are left out.
    places = [at for at in range(len(table[0])) if any(cells[at].content for cells in table)]
    head = "".join(
        f'<th scope="col"{_class(cell.kind)}>'
        f'<button type="button" data-first="{cell.first}">{cell.column}</button></th>'
        for cell in (table[0][at] for at in places)
    )
    lines = []
    for each, cells in zip(shown, table, strict=True):
        source = each.row.source
        kind = "ours" if source.is_system else "published"
        rendered = "".join(_render(cells[at]) for at in places)
        lines.append(f'<tr data-source="{source}"{_class(kind)}>{rendered}</tr>')
    body = "\n".join(lines)
    return f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>"


def _cells(shown: Shown, names: Mapping[Address, str]) -> Iterator[_Cell]:
    row = shown.row
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
    others = None if row.rates is None else 1 - row.rates.get(Status.OK, 0)
    yield _Cell("Not ok", html_text(not_ok(row)), others)
    recipients = row.unmasked_text_to
    yield _Cell("Unmasked text goes to", html_text(recipients), recipients or None)
    yield _Cell("Source", _source(shown), row.source)


def _render(cell: _Cell) -> str:
    value = "" if cell.value is None else f' data-value="{html_text(str(cell.value))}"'
    return f"<td{_class(cell.kind)}{value}>{cell.content}</td>"


def _model(row: Row, names: Mapping[Address, str]) -> str:
    name = names.get(address(row))
    if name is None:
        return html_text(row.model)
    state = urlencode({"set": row.dataset, "by": row.task, "a": name}, errors="replace")
    return f'<a href="#{html_text(state)}" title="show its samples">{html_text(row.model)}</a>'


def _interval(row: Row) -> str:
    """Return the interval as a drawing, with the headline in it, and as figures."""
    if row.interval is None or row.headline is None:
        return ""
    low, mean, high = (100 * each for each in (row.interval.low, row.headline, row.interval.high))
    return (
        '<svg viewBox="-3 0 106 10" width="106" height="10" aria-hidden="true">'
        '<path d="M0 1v8M0 5h100M50 3.5v3M100 1v8"/>'
        f'<line x1="{low:.1f}" x2="{high:.1f}" y1="5" y2="5"/>'
        f'<circle cx="{mean:.1f}" cy="5" r="2"/></svg>'
        f"<span>{_bounds(row.interval)}</span>"
    )


def _bounds(interval: Interval) -> str:
    return f"{interval.low:.3f} to {interval.high:.3f}"


def _source(shown: Shown) -> str:
    row = shown.row
    note = f' title="{html_text(row.note)}"' if row.note else ""
    first, *others = source_marks(row.source, oracle=row.oracle, complete=row.complete)
    marks = [first, *([str(Source.REFERENCE)] if shown.repeated else []), *others]
    return " ".join(f'<span class="badge {mark}"{note}>{mark}</span>' for mark in marks)


def _hash(content: str) -> str:
    digest = hashlib.sha256(content.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


def _class(kind: str) -> str:
    return f' class="{kind}"' if kind else ""
