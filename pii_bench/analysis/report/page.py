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
from pii_bench.ranking.html import Page, fill, merged, render_board, render_summary

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
"""In the order in which they are joined to one."""

_LEAD: Final = (
    "How well systems mask what a question does not need, and every sample with what they said of "
    "it."
)
_LINKS: Final = {
    "summary": "Summary",
    "samples": "Samples",
    "figures": "Figures",
    "leaderboard": "Tables",
}

# JSON may hold these; a line of script, or UTF-8, may not, and a terminal should not.
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
    page = Page(
        kind="report",
        lead=_LEAD,
        links=_LINKS,
        main="".join(main),
        scripts=SCRIPTS,
        notes=_notes(report),
        data=to_json(report.record),
    )
    return html.render(page, report.rows)


def to_json(record: Record) -> str:
    """Return JSON that is safe inside a script element."""
    text = json.dumps(record, ensure_ascii=False, separators=(",", ":"))
    return _ESCAPED.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _leaks(leaks: Leaks | None) -> str:
    """Return what the best system leaves readable, by category; empty if nothing leaks."""
    if leaks is None or not leaks.categories:
        return ""
    lines = "".join(
        f"<li><span>{html_text(name)}</span>"
        f'<svg viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect width="{100 * leaked / of:.1f}" height="6"/></svg>'
        f"<small>{leaked} of {of}</small></li>"
        for name, leaked, of in leaks.categories
    )
    return (
        f"<h3>What leaks</h3>\n<p>Values that no query needs and that can still be read after "
        f"<b>{html_text(leaks.title)}</b> on {html_text(leaks.dataset)}, by category:</p>\n"
        f'<ul class="leaks">{lines}</ul>\n'
    )


def _notes(report: Report) -> str:
    notes = []
    if report.foreign_texts:
        notes.append(
            f"This file holds the texts of {_listed(report.foreign_texts)}. They are not among "
            "the synthetic datasets of pii_bench: the file is as private as they are."
        )
    if report.without_texts:
        notes.append(
            f"The texts of {_listed(report.without_texts)} are left out: of their samples there "
            "are only ids and figures."
        )
    if report.left_out:
        notes.append(f"Runs left out, for they could not be read: {len(report.left_out)}.")
    return "".join(f'<p class="note">{note}</p>' for note in notes)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"<b>{html_text(name)}</b>" for name in names)


def _figures(figures: Figures) -> str:
    if figures.missing:
        return f"<p>{html_text(figures.missing)}</p>"
    return "\n".join(
        f"<figure><figcaption>{html_text(figure.caption)}</figcaption>"
        f'<div class="scroll"><img alt="{html_text(figure.caption)}" src="{_image(figure.svg)}">'
        "</div></figure>"
        for figure in figures.drawn
    )


def _image(svg: str) -> str:
    # As an image it can neither run nor load anything, and its ids stay its own.
    return f"data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}"
