"""The part of `pii-bench mask` that masks many texts: a folder, or a column of a table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from pii_bench.errors import PiiBenchError
from pii_bench.runs.corpora import corpus_of_folder, corpus_of_table

if TYPE_CHECKING:
    import argparse

    from pii_bench.runs.corpora import Corpus

OPTIONS: Final = ("out", "column", "query_column")
"""The arguments that only a corpus takes."""

DESCRIPTION: Final = (
    "Every *.txt file below a folder, or a column of a .jsonl, .csv or .parquet file. A run that "
    "was stopped goes on when it is given again: files that are there are skipped; of a table "
    "the complete rows in OUT.part are kept, a torn last line is cut off, and as many rows of "
    "the input are skipped. OUT.part becomes OUT at the end (for .parquet it holds the masked "
    "texts as lines of JSON until then). Give the same query and system again: that is not "
    "checked. At the first text on which the system fails the run stops and names it."
)


def add_arguments(group: argparse._ActionsContainer) -> None:
    """What only a corpus takes."""
    group.add_argument(
        "--out", type=Path, help="folder for a folder, or for a table a file with its ending"
    )
    group.add_argument("--column", metavar="NAME", help="the texts of a table")
    group.add_argument(
        "--query-column", metavar="NAME", help="its queries, instead of --query; not masked"
    )


def is_meant(arguments: argparse.Namespace) -> bool:
    """Whether a corpus is to be masked, and not one text."""
    given = any(getattr(arguments, option) is not None for option in OPTIONS)
    return given or arguments.file.is_dir()


def check(arguments: argparse.Namespace) -> None:
    """Refuse arguments that are wrong for any corpus.

    Raises:
        PiiBenchError: what is wrong.
    """
    for option in ("mapping", "explain", "json"):
        if getattr(arguments, option):
            raise PiiBenchError(f"--{option} is for one text, not for a corpus: leave it out")
    if arguments.out is None:
        raise PiiBenchError("--out is missing: where do the masked texts go?")
    if (arguments.query is None) == (arguments.query_column is None):
        raise PiiBenchError("what will be asked about the texts? Give --query or --query-column")
    if arguments.query is not None and not arguments.query.strip():
        raise PiiBenchError("the query is blank: what will be asked about the texts?")


def prepare(arguments: argparse.Namespace) -> Corpus:
    """Look at what is to be masked and at what is masked already.

    Raises:
        PiiBenchError: wrong arguments, or an input that cannot be read.
    """
    path, out, force = arguments.file, arguments.out, arguments.force
    if path.is_dir():
        if arguments.column is not None or arguments.query_column is not None:
            raise PiiBenchError(f"{path}: a folder has no columns; it takes --query and --out")
        return corpus_of_folder(path, out, force=force)
    if arguments.column is None:
        raise PiiBenchError(f"--column is missing: which column of {path} holds the texts?")
    if arguments.column == arguments.query_column:
        raise PiiBenchError("--query-column is the column of the texts, which are masked")
    return corpus_of_table(path, out, arguments.column, arguments.query_column, force=force)
