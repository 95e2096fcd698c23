"""The report page: one self-contained HTML file.

The texts of samples are in one block of JSON without `<`, so that no text can end it; the script
inserts them as text nodes, never as markup.
"""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pii_bench.escaping import html_text
from pii_bench.ranking import html
from pii_bench.ranking.html import fill, merged, render_board, render_summary

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pii_bench.analysis.figures import Figures
    from pii_bench.analysis.report.data import Leaks, Report
    from pii_bench.analysis.report.samples import Record

ASSETS: Final = Path(__file__).with_name("assets")
SCRIPTS: Final = (
    *html.SCRIPTS,
    *(ASSETS / name for name in ("marks.js", "answers.js", "samples.js")),
)
"""The scripts of the page, in the order in which they are joined."""

_LEAD: Final = (
    "How well systems mask what a question does not need, and every sample with the answers of "
    "each system."
)
_LINKS: Final = {
    "summary": "Summary",
    "samples": "Samples",
    "figures": "Figures",
    "leaderboard": "Tables",
}

# Characters that JSON allows but a script element, UTF-8 or a terminal does not.
_ESCAPED: Final = re.compile("[<\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def render_page(report: Report) -> str:
    """Return the HTML file; the same report gives the same text."""
    shown = merged(report.rows)
    more = _leaks(report.leaks) + '<div id="examples"></div>\n'
    main = (
        render_summary(shown, more),
        fill(ASSETS / "samples.html", {"figures": _figures(report.figures)}),
        render_board(shown, report.names),
    )
    return html.render(
        report.rows,
        kind="report",
        lead=_LEAD,
        links=_LINKS,
        main="".join(main),
        scripts=SCRIPTS,
        notes=_notes(report),
        data=to_json(report.record),
    )


def to_json(record: Record) -> str:
    """Return JSON that is safe inside a script element."""
    text = json.dumps(record, ensure_ascii=False, separators=(",", ":"))
    return _ESCAPED.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _leaks(leaks: Leaks | None) -> str:
    """Return what the best system leaves readable, by category; empty if nothing leaks."""
    if leaks is None or not leaks.categories:
        return ""
    lines = "".join(
        f"<li><span>{html_text(category.name)}</span>"
        f'<svg viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect width="{100 * category.readable / category.unneeded:.1f}" height="6"/></svg>'
        f"<small>{category.readable} of {category.unneeded}</small></li>"
        for category in leaks.categories
    )
    return (
        f"<h3>What leaks</h3>\n<p>Values that the query does not need and that "
        f"<b>{html_text(leaks.title)}</b> leaves readable on {html_text(leaks.dataset)}, by "
        "category:</p>\n"
        f'<ul class="leaks">{lines}</ul>\n'
    )


def _notes(report: Report) -> str:
    notes = []
    if report.foreign_texts:
        notes.append(
            f"This file contains the texts of {_listed(report.foreign_texts)}, which are not "
            "synthetic datasets of pii_bench. Treat the file as you treat these texts."
        )
    if report.without_texts:
        notes.append(
            f"The texts of {_listed(report.without_texts)} are left out; their samples have "
            "only ids and figures."
        )
    if report.left_out:
        notes.append(
            f"Left out: {len(report.left_out)}; the command that wrote this page printed why."
        )
    return "".join(f'<p class="note">{note}</p>' for note in notes)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"<b>{html_text(name)}</b>" for name in names)


def _figures(figures: Figures) -> str:
    if figures.missing:
        return f"<p>No figures: {html_text(figures.missing)}</p>"
    return "\n".join(
        f"<figure><figcaption>{html_text(figure.caption)}</figcaption>"
        f'<div class="scroll"><img alt="{html_text(figure.caption)}" src="{_image(figure.svg)}">'
        "</div></figure>"
        for figure in figures.drawn
    )


def _image(svg: str) -> str:
    # An image cannot run scripts or load files, and its ids do not clash with those of the page.
    return f"data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}"
