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

Address: TypeAlias = "tuple[Source, str, str, str, Task]"
"""The key of a row: source, model, strategy, dataset and task."""

ASSETS: Final = Path(__file__).with_name("assets")
SCRIPTS: Final = tuple(ASSETS / name for name in ("state.js", "tables.js"))
_LEAD: Final = "How well systems find personal information, and mask what a question does not need."


def address(row: Row) -> Address:
    """Return the key of a row."""
    return row.source, row.model, row.strategy, row.dataset, row.task


@dataclass(frozen=True, slots=True)
class Page:
    """The content of a page, without the signatures of its rows.

    Attributes:
        kind: the title.
        lead: HTML, a sentence about the page.
        links: id of a section to its heading.
        main: HTML, the sections.
        scripts: files that are joined to one script, in this order.
        notes: HTML under the title.
        data: JSON without `<`.
    """

    kind: str
    lead: str
    links: Mapping[str, str]
    main: str
    scripts: Sequence[Path]
    notes: str = ""
    data: str = "{}"


def render(page: Page, rows: Sequence[Row]) -> str:
    """Return the HTML of a page; it depends on nothing but the arguments."""
    style = (ASSETS / "page.css").read_text(encoding="utf-8")
    parts = [path.read_text(encoding="utf-8") for path in page.scripts]
    script = '"use strict";\n{\n' + "\n".join(parts) + "}\n"
    links = {**page.links, "signatures": "Signatures"}
    return fill(
        ASSETS / "page.html",
        {
            "policy": _policy(script, style),
            "style": style,
            "version": html_text(pii_bench.__version__),
            "kind": page.kind,
            "lead": page.lead,
            "links": "".join(f'<a href="#{name}">{heading}</a>' for name, heading in links.items()),
            "notes": page.notes,
            "main": page.main,
            "signatures": _signatures(rows),
            "data": page.data,
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
    main = f"{render_summary(shown)}{render_board(shown, {})}"
    links = {"summary": "Summary", "leaderboard": "Leaderboard"}
    return render(Page("leaderboard", _LEAD, links, main, [*SCRIPTS, ASSETS / "board.js"]), rows)


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
    ranked = [row for row in rows if row.task is Task.MASKING and row.rank is not None]
    best = [_best(ranked, dataset, Task.MASKING) for dataset in _in_order(ranked)]
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
    others = [row for row in rows if row.task is not Task.DETECTION]
    models = {row.model for row in others}
    alone = [row for row in rows if row.model not in models]
    return {system_of(row) for row in [*others, *alone]}


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
    others = [
        f"{label}: {html_text(system_of(best))} {best.headline:.3f}"
        for task, label in ((Task.DETECTION, "detection"), (Task.QUERY_RELATED, "query"))
        if (best := _best(ours, row.dataset, task)) is not None
    ]
    between = (
        f" <small>{row.interval.low:.3f} to {row.interval.high:.3f}</small>" if row.interval else ""
    )
    return (
        f"<li><h3>{html_text(row.dataset)}</h3>"
        f'<p class="lead-system">{html_text(system_of(row))}</p>'
        f"<p><b>H {row.headline:.3f}</b>{between}</p>"
        f"<p>leaks {1 - row.metrics['protection']:.0%} of what is not needed, "
        f"hides {1 - row.metrics['retention']:.0%} of what is</p>"
        f'<p class="quiet">{"; ".join(others)}</p></li>'
    )


def _best(rows: Sequence[Row], dataset: str, task: Task) -> Row | None:
    ranked = [r for r in rows if (r.dataset, r.task) == (dataset, task) and r.rank is not None]
    return max(ranked, key=lambda row: row.headline or 0.0, default=None)


def system_of(row: Row) -> str:
    """Return the name of a row's system: only the model if it does both tasks."""
    if row.task is Task.DETECTION or row.model == row.strategy:
        return row.model
    return system_name(row.model, row.strategy)


def _in_order(rows: Sequence[Row]) -> list[str]:
    """Return the datasets of rows, those of the catalog first and in its order."""
    names = list(dict.fromkeys(row.dataset for row in rows))
    return [name for name in DATASETS if name in names] + [
        name for name in names if name not in DATASETS
    ]


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

    Datasets with only published rows come last; those of the catalog are in its order.

    Args:
        shown: the rows.
        names: names of the runs whose samples are on the page.
    """
    places = {name: place for place, name in enumerate(DATASETS)}
    ours = {each.row.dataset for each in shown if each.row.source is not Source.PUBLISHED}
    rows = sorted(
        shown,
        key=lambda each: (
            each.row.dataset not in ours,
            places.get(each.row.dataset, len(places)),
            each.row.dataset,
        ),
    )
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


def _signatures(rows: Sequence[Row]) -> str:
    """Return the distinct signatures as a list."""
    signatures = dict.fromkeys(row.signature for row in rows if row.signature)
    lines = [f"<li><code>{html_text(signature)}</code>" for signature in signatures]
    return f"<ul>{''.join(lines)}</ul>" if lines else ""


def _table(shown: Sequence[Shown], names: Mapping[Address, str]) -> str:
    rows = [each.row for each in shown]
    body = [list(_cells(each, names)) for each in shown]
    # Empty columns are left out.
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


def _kind(row: Row) -> str:
    return "ours" if row.source.is_system else "published"


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
        f"<span>{row.interval.low:.3f} to {row.interval.high:.3f}</span>"
    )


def _source(shown: Shown) -> str:
    row = shown.row
    note = f' title="{html_text(row.note)}"' if row.note else ""
    first, *others = source_marks(row)
    marks = [first, *([str(Source.REFERENCE)] if shown.repeated else []), *others]
    return " ".join(f'<span class="badge {mark}"{note}>{mark}</span>' for mark in marks)


def _policy(script: str, style: str) -> str:
    return (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _hash(content: str) -> str:
    digest = hashlib.sha256(content.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


def _class(kind: str) -> str:
    return f' class="{kind}"' if kind else ""
