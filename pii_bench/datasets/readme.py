"""Blocks of a Markdown file that commands write: `<!-- NAME:begin -->` to `<!-- NAME:end -->`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pii_bench.errors import InputFileError
from pii_bench.files import write_whole
from pii_bench.resources import DATA

if TYPE_CHECKING:
    from pathlib import Path

README: Final = DATA / "README.md"
"""The dataset card of our data, after the conventions of Hugging Face."""


def replace_block(name: str, markdown: str, path: Path) -> None:
    """Replace what is between the two marks of a block.

    Args:
        name: of the block.
        markdown: the new text.
        path: the file.

    Raises:
        InputFileError: the file cannot be read, or does not have each mark once, in order.
        ResultsError: it cannot be written.
    """
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputFileError(path, "cannot be read as text") from error
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(end)
    if (text.count(begin), text.count(end), rest.count(end)) != (1, 1, 1):
        raise InputFileError(path, f"must have {begin} and after it {end}, each once")
    write_whole(path, f"{before}{begin}\n{markdown.strip()}\n{end}{after}")
