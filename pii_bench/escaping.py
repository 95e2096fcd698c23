"""Escaping of untrusted text, one function per output format.

Model ids returned by a server, sample ids and types, file names and server messages are printed
to terminals, Markdown, HTML, LaTeX and CSV. Escaped, they cannot move the cursor, run a script,
add a column or act as a formula.
"""

from __future__ import annotations

import csv
import html
import io
import re
from math import isnan
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

# Control characters (C0, DEL, C1), marks that change direction or end a line, and lone
# surrogates, which UTF-8 cannot encode.
_UNSEEN: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)
# First characters of a cell that spreadsheets evaluate as a formula (OWASP, "CSV Injection").
_FORMULA: Final = ("=", "+", "-", "@")
# The end of a cell, code, an escape, the start of a tag, the end of a link text.
_MARKDOWN: Final = re.compile(r"[\\|`]|<(?=[A-Za-z/!?])|\](?=[(\[])")
_LATEX: Final[Mapping[str, str]] = {
    **{character: f"\\{character}" for character in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "^": r"\^{}",
    "~": r"\~{}",
}


def visible(text: str) -> str:
    r"""Escape invisible characters and line ends: ESC becomes `\x1b`."""
    return _UNSEEN.sub(_escape, text)


def terminal(text: str) -> str:
    """Escape text for a terminal: as `visible`, but keep line ends and tabs."""
    return _UNSEEN.sub(lambda match: match[0] if match[0] in "\n\t" else _escape(match), text)


def markdown(text: str) -> str:
    """Escape text inside a line of Markdown or a table cell."""
    return _MARKDOWN.sub(r"\\\g<0>", visible(text))


def markdown_table(
    header: Sequence[str], rows: Iterable[Sequence[object]], align: Sequence[str] | None = None
) -> str:
    """Return a Markdown table with escaped cells; the header is not escaped.

    `align` is `left` or `right` for each column; None for left.
    """
    from tabulate import tabulate

    cells = [[markdown(str(cell)) for cell in row] for row in rows]
    return tabulate(cells, header, tablefmt="pipe", disable_numparse=True, colalign=align)


def markdown_code(text: str) -> str:
    """Return a text as inline code in Markdown."""
    text = visible(text)
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence, space = "`" * (longest + 1), " " if longest else ""
    return f"{fence}{space}{text}{space}{fence}"


def html_text(text: str) -> str:
    """Escape text in HTML content or in a quoted attribute."""
    return html.escape(visible(text))


def latex(text: str) -> str:
    """Escape text in a LaTeX paragraph."""
    return "".join(_LATEX.get(character, character) for character in visible(text))


def csv_text(header: Sequence[str], rows: Iterable[Iterable[object]], figure: str = ".4f") -> str:
    """Return a table as CSV; the header is not escaped, and None and NaN become empty.

    An apostrophe keeps spreadsheets from evaluating a text as a formula. `figure` is the format
    specification for floats.
    """
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([_csv_cell(cell, figure) for cell in row] for row in rows)
    return table.getvalue()


def _csv_cell(cell: object, figure: str) -> object:
    if isinstance(cell, float):
        return "" if isnan(cell) else format(cell, figure)
    if isinstance(cell, str):
        shown = visible(cell)
        return f"'{shown}" if shown.startswith(_FORMULA) else shown
    return cell


def _escape(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode("ascii")
