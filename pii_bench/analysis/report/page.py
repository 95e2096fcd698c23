"""The page: one HTML file that loads nothing.

Texts of samples stand in one block of JSON, in which `<` never occurs, so that no text can end
it; the script makes text nodes of them and no markup. A policy (CSP) lets run that script alone
and forbids every connection.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pii_bench
from pii_bench.analysis.report.tables import render_signatures, render_tables
from pii_bench.escaping import html_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pii_bench.analysis.report.data import Report
    from pii_bench.analysis.report.figures import Figures
    from pii_bench.analysis.report.samples import Record

ASSETS: Final = Path(__file__).with_name("assets")
SCRIPTS: Final = ("state.js", "tables.js", "marks.js", "answers.js", "samples.js")
"""In the order in which they are joined to one."""

# JSON may hold these; a line of script, or UTF-8, may not, and a terminal should not.
_ESCAPED: Final = re.compile("[<\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def render_page(report: Report) -> str:
    """The whole file; the same report gives the same text."""
    style = (ASSETS / "report.css").read_text(encoding="utf-8")
    parts = [(ASSETS / name).read_text(encoding="utf-8") for name in SCRIPTS]
    script = '"use strict";\n{\n' + "\n".join(parts) + "}\n"
    return _fill(
        (ASSETS / "page.html").read_text(encoding="utf-8"),
        {
            "policy": _policy(script, style),
            "style": style,
            "version": html_text(pii_bench.__version__),
            "summary": _summary(report),
            "notes": _notes(report),
            "tables": render_tables(report),
            "figures": _figures(report.figures),
            "signatures": render_signatures(report),
            "data": to_json(report.record),
            "script": script,
        },
    )


def to_json(record: Record) -> str:
    """JSON that can stand in an element of script, whatever its texts are."""
    text = json.dumps(record, ensure_ascii=False, separators=(",", ":"))
    return _ESCAPED.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _fill(page: str, values: Mapping[str, str]) -> str:
    # In one pass: what is put in is not looked at again.
    return re.sub(r"\{\{(\w+)\}\}", lambda match: values[match[1]], page)


def _policy(script: str, style: str) -> str:
    return (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _hash(content: str) -> str:
    digest = hashlib.sha256(content.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


def _summary(report: Report) -> str:
    ours = sum(bool(row.signature) for row in report.rows)
    samples = sum(len(dataset["samples"]) for dataset in report.record["datasets"])
    facts = {
        "rows of ours": ours,
        "published rows": len(report.rows) - ours,
        "runs to look into": len(report.record["runs"]),
        "samples": samples,
    }
    return "".join(
        f"<div><dd>{number:,}</dd><dt>{what}</dt></div>" for what, number in facts.items()
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
        f'<img alt="{html_text(figure.caption)}" src="{_image(figure.svg)}"></figure>'
        for figure in figures.drawn
    )


def _image(svg: str) -> str:
    # As an image it can neither run nor load anything, and its ids stay its own.
    return f"data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}"
