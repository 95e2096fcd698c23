"""Pages of HTML that load nothing: tables that are complete without any script.

The script sorts and filters them. A policy (CSP) lets that script alone run and forbids every
connection.
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
from pii_bench.ranking.render import SHOWN, failures, figure
from pii_bench.ranking.rows import Source, source_marks, system_name
from pii_bench.tasks import Task

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pii_bench.ranking.rows import Row

Address: TypeAlias = "tuple[Source, str, str, str, Task]"
"""Which row it is: source, model, strategy, dataset and task."""

ASSETS: Final = Path(__file__).with_name("assets")
SCRIPTS: Final = tuple(ASSETS / name for name in ("state.js", "tables.js"))
_ALONE: Final = ASSETS / "board.js"
_LEAD: Final = "How well systems find personal information, and mask what a question does not need."


def address(row: Row) -> Address:
    """Which row it is."""
    return row.source, row.model, row.strategy, row.dataset, row.task


@dataclass(frozen=True, slots=True)
class Page:
    """What a page has besides the signatures of its rows.

    Attributes:
        kind: its title.
        lead: what it shows, HTML.
        links: name of a section to its heading.
        main: sections, HTML.
        scripts: in the order in which they are joined to one.
        notes: HTML under the title.
        data: JSON in which `<` never occurs.
    """

    kind: str
    lead: str
    links: Mapping[str, str]
    main: str
    scripts: Sequence[Path]
    notes: str = ""
    data: str = "{}"


def render(page: Page, rows: Sequence[Row]) -> str:
    """The whole file; the same page gives the same text."""
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
            "links": "".join(f'<a href="#{name}">{what}</a>' for name, what in links.items()),
            "notes": page.notes,
            "main": page.main,
            "signatures": _signatures(rows),
            "data": page.data,
            "script": script,
        },
    )


def fill(template: Path, values: Mapping[str, str]) -> str:
    """A template with its places filled; what is put in is not looked at again."""
    text = template.read_text(encoding="utf-8")
    return re.sub(r"\{\{(\w+)\}\}", lambda match: values[match[1]], text)


def leaderboard_page(rows: Sequence[Row]) -> str:
    """The leaderboard by itself."""
    shown = merged(rows)
    main = f"{render_summary(shown)}{render_board(shown, {})}"
    links = {"summary": "Summary", "leaderboard": "Leaderboard"}
    return render(Page("leaderboard", _LEAD, links, main, [*SCRIPTS, _ALONE]), rows)


@dataclass(frozen=True, slots=True)
class Shown:
    """A row as a page shows it; `repeated` if a reference row has the same figures."""

    row: Row
    repeated: bool = False


def merged(rows: Sequence[Row]) -> list[Shown]:
    """The rows without the reference rows that a run of one's own repeats to the digit."""
    own = {address(row)[1:]: row for row in rows if row.source is Source.RUN}
    repeated = {
        address(row)[1:]
        for row in rows
        if row.source is Source.REFERENCE
        and (mine := own.get(address(row)[1:])) is not None
        and (mine.metrics, mine.scored) == (row.metrics, row.scored)
    }
    return [
        Shown(row, repeated=row.source is Source.RUN and address(row)[1:] in repeated)
        for row in rows
        if row.source is not Source.REFERENCE or address(row)[1:] not in repeated
    ]


def leaders(rows: Sequence[Row]) -> list[Row]:
    """For each dataset the row of masking that has the highest H of those that are ranked."""
    ranked = [row for row in rows if row.task is Task.MASKING and row.rank is not None]
    best = {name: [row for row in ranked if row.dataset == name] for name in _in_order(ranked)}
    return [max(own, key=lambda row: row.headline or 0.0) for own in best.values()]


def render_summary(shown: Sequence[Shown], more: str = "") -> str:
    """What was run and who leads, with `more` below."""
    ours = [each.row for each in shown if each.row.source.is_system]
    names = {system_of(row) for row in ours if row.task is not Task.DETECTION}
    names = names or {system_of(row) for row in ours}
    sent = sorted({row.unmasked_text_to for row in ours} - {"", "this machine"})
    told = (
        f"Unmasked text was sent to {html_text(', '.join(sent))}."
        if sent
        else "No text left this machine."
    )
    sets = len(_in_order(ours))
    cards = "".join(_card(row, ours) for row in leaders(ours))
    return (
        '<section id="summary" aria-labelledby="summary-title">\n'
        '<h2 id="summary-title">Summary</h2>\n'
        f"<p>{len(names)} {_many('system', len(names))} on {sets} {_many('dataset', sets)}. {told} "
        "Best at masking what a question does not need, told no gold:</p>\n"
        f'<ul class="cards">{cards or "<li>No run of masking is complete.</li>"}</ul>\n'
        f"{more}</section>\n"
    )


def _many(noun: str, count: int) -> str:
    return noun if count == 1 else f"{noun}s"


def _card(row: Row, ours: Sequence[Row]) -> str:
    """One dataset: who leads, and what leaks and is hidden."""
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
    """The name of a row's system: of one model that does both, the model's."""
    if row.task is Task.DETECTION or row.model == row.strategy:
        return row.model
    return system_name(row.model, row.strategy)


def _in_order(rows: Sequence[Row]) -> list[str]:
    """The datasets of some rows, those of the catalog in its order."""
    found = list(dict.fromkeys(row.dataset for row in rows))
    return [*(name for name in DATASETS if name in found), *(n for n in found if n not in DATASETS)]


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


def render_board(shown: Sequence[Shown], names: Mapping[Address, str]) -> str:
    """The leaderboard: how to read it, and a folded table for each dataset and task.

    Datasets with rows of ours come first, and those of the catalog in its order.

    Args:
        shown: the rows.
        names: of those whose samples the page has, the names of the runs.
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
            f"<small>{_first(members)}</small></summary>\n"
            f'<div class="scroll" tabindex="0" role="region" aria-label="{name}, {task}">'
            f'<table id="table-{number}">{_table(members, names)}</table></div>\n'
            "</details></section>"
        )
    return fill(ASSETS / "board.html", {"tables": "\n".join(sections)})


def _first(members: Sequence[Shown]) -> str:
    """The best row of a table, in words."""
    best = _best([each.row for each in members], members[0].row.dataset, members[0].row.task)
    led = "" if best is None else f"{html_text(system_of(best))} {best.headline:.3f}, "
    return f"{led}{len(members)} {_many('row', len(members))}"


def _signatures(rows: Sequence[Row]) -> str:
    """The lines that reproduce our rows, each once."""
    signed = dict.fromkeys(row.signature for row in rows if row.signature)
    lines = [f"<li><code>{html_text(signature)}</code>" for signature in signed]
    return f"<ul>{''.join(lines)}</ul>" if lines else ""


def _table(shown: Sequence[Shown], names: Mapping[Address, str]) -> str:
    rows = [each.row for each in shown]
    body = [list(_cells(each, names)) for each in shown]
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
    failed = sum(rate for status, rate in (row.rates or {}).items() if not status.answered)
    known = None if row.rates is None else failed
    yield _Cell("Failures", html_text(failures(row)), known)
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
