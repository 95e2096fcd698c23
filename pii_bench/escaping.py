"""Texts of other people in our outputs: one function for each kind of output.

Model ids that a server returned, ids and types of samples, names of files and messages of
servers reach a terminal, Markdown, HTML, LaTeX, CSV and figures. Whatever they hold, they stay
text there: they move no cursor, run no script, add no column and are no formula.
"""

from __future__ import annotations

import csv
import html
import io
import re
from math import isnan
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

# Control characters (C0, DEL, C1), marks that turn the direction of a line or end it, and
# halves of surrogate pairs, which UTF-8 cannot hold.
_UNSEEN: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)
# What begins a cell that spreadsheets take for a formula (OWASP, "CSV Injection").
_FORMULA: Final = ("=", "+", "-", "@")
# A cell's end, code, an escape, and what begins a tag or ends the text of a link.
_MARKDOWN: Final = re.compile(r"[\\|`]|<(?=[A-Za-z/!?])|\](?=[(\[])")
_LATEX: Final[Mapping[str, str]] = MappingProxyType(
    {
        **{character: f"\\{character}" for character in "&%$#_{}"},
        "\\": r"\textbackslash{}",
        "^": r"\^{}",
        "~": r"\~{}",
    }
)


def visible(text: str) -> str:
    r"""A text on one line in which every character can be seen: ESC becomes `\x1b`."""
    return _UNSEEN.sub(_escape, text)


def terminal(text: str) -> str:
    """Lines for a terminal: as `visible`, but line ends and tabs stay."""
    return _UNSEEN.sub(lambda match: match[0] if match[0] in "\n\t" else _escape(match), text)


def markdown(text: str) -> str:
    """A text inside a line of Markdown or a cell of one of its tables."""
    return _MARKDOWN.sub(r"\\\g<0>", visible(text))


def markdown_table(
    header: Sequence[str], rows: Iterable[Sequence[object]], align: Sequence[str] | None = None
) -> str:
    """A table in Markdown.

    Args:
        header: headings of its columns, of our own.
        rows: their cells.
        align: `left` or `right` for each column; None for the left.
    """
    from tabulate import tabulate  # the first call of a run does not wait for it

    cells = [[markdown(str(cell)) for cell in row] for row in rows]
    return tabulate(cells, header, tablefmt="pipe", disable_numparse=True, colalign=align)


def markdown_code(text: str) -> str:
    """A text as code in a line of Markdown."""
    text = visible(text)
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence, space = "`" * (longest + 1), " " if longest else ""
    return f"{fence}{space}{text}{space}{fence}"


def html_text(text: str) -> str:
    """A text between tags of HTML or in an attribute in quotes."""
    return html.escape(visible(text))


def latex(text: str) -> str:
    """A text in a paragraph of LaTeX."""
    return "".join(_LATEX.get(character, character) for character in visible(text))


def csv_cell(value: object) -> object:
    """A cell of CSV that no spreadsheet takes for a formula: an apostrophe precedes those.

    What is no text stays as it is.
    """
    if not isinstance(value, str):
        return value
    shown = visible(value)
    return f"'{shown}" if shown.startswith(_FORMULA) else shown


def csv_text(header: Sequence[str], rows: Iterable[Iterable[object]], figure: str = ".4f") -> str:
    """A table as CSV.

    Args:
        header: names of its columns, of our own.
        rows: their cells; None and NaN are empty.
        figure: format of floats.
    """
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([_csv_cell(cell, figure) for cell in row] for row in rows)
    return table.getvalue()


def _csv_cell(cell: object, figure: str) -> object:
    if isinstance(cell, float):
        return "" if isnan(cell) else format(cell, figure)
    return csv_cell(cell)


def _escape(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode("ascii")
