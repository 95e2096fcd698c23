"""The part of `pii-bench mask` that masks many texts: a folder, or a column of a table."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pii_bench.cli.terminal import RunProgress
from pii_bench.errors import InputFileError, PiiBenchError
from pii_bench.files import read_text, write_whole
from pii_bench.masking.tables import Row, append, begin, open_table
from pii_bench.runs.mask_text import Counts, MaskingError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator

    from pii_bench.runs.mask_text import MaskedText

    Maskings = Callable[[Iterator[tuple[str | None, str]]], Iterator[MaskedText]]

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


@dataclass(frozen=True, slots=True)
class Corpus:
    """Many texts, of which an earlier run has `done` some.

    `rows` reads the others, each with what its encoded masked text is given to; `finish` is
    called when all are masked.
    """

    name: str
    total: int
    done: int
    rows: Iterator[tuple[Row, Callable[[str], None]]]
    finish: Callable[[], None]


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
    """Look at what is to be masked and at what is masked already, and begin `OUT.part`.

    Raises:
        PiiBenchError: wrong arguments, or an input that cannot be read.
    """
    return _folder(arguments) if arguments.file.is_dir() else _table(arguments)


def _folder(arguments: argparse.Namespace) -> Corpus:
    folder, out = arguments.file, arguments.out
    if arguments.column is not None or arguments.query_column is not None:
        raise PiiBenchError(f"{folder}: a folder has no columns; it takes --query and --out")
    inner, outer = folder.resolve(), out.resolve()
    # Masked texts would be masked again, or unmasked ones taken for masked.
    if inner.is_relative_to(outer) or outer.is_relative_to(inner):
        raise PiiBenchError(f"--out {out}: neither this nor {folder} may be in the other")
    texts = sorted(path for path in folder.rglob("*.txt") if path.is_file())
    if not texts:
        raise InputFileError(folder, "no *.txt file is below it")
    pairs = [(path, out / path.relative_to(folder)) for path in texts]
    left = [pair for pair in pairs if arguments.force or not pair[1].exists()]
    rows = (
        (Row(str(path), read_text(path), None, _as_it_is), partial(write_whole, target))
        for path, target in left
    )
    return Corpus(str(folder), len(pairs), len(pairs) - len(left), rows, lambda: None)


def _as_it_is(masked: str | None) -> str:
    return masked or ""


def _table(arguments: argparse.Namespace) -> Corpus:
    path, out = arguments.file, arguments.out
    if arguments.column is None:
        raise PiiBenchError(f"--column is missing: which column of {path} holds the texts?")
    if arguments.column == arguments.query_column:
        raise PiiBenchError("--query-column is the column of the texts, which are masked")
    if out.suffix.lower() != path.suffix.lower():
        raise PiiBenchError(f"--out {out}: must end in {path.suffix!r} as the input does")
    if out.resolve() == path.resolve():
        raise PiiBenchError(f"--out {out}: is the input itself")
    part = out.with_name(f"{out.name}.part")
    if out.exists() and not arguments.force and not part.exists():
        raise PiiBenchError(f"--out {out}: is there already; --force replaces it")
    table = open_table(path, arguments.column, arguments.query_column)
    # Reads all of it: a row that is no good is named before the first text is masked.
    total = sum(1 for _ in table.rows())
    done = begin(table, part, force=arguments.force)
    if done > total:
        raise PiiBenchError(f"{part}: has {done} rows, {path} only {total}; --force begins anew")
    rows = ((row, partial(append, part)) for row in islice(table.rows(), done, None))
    return Corpus(str(path), total, done, rows, partial(table.finish, part, out))


def run(corpus: Corpus, query: str | None, maskings: Maskings) -> Counts:
    """Mask what is not masked yet, each text for its own query or else for `query`; count it.

    Raises:
        MaskingError: the system fails on a text; what precedes it is kept.
        PiiBenchError: a text cannot be read, or a masked one not be written.
    """
    counts = Counts()
    # Rows whose texts were read and are not masked yet.
    waiting: deque[tuple[Row, Callable[[str], None]]] = deque()

    def texts() -> Iterator[tuple[str | None, str]]:
        for row, write in corpus.rows:
            waiting.append((row, write))
            yield row.text, (query or "") if row.query is None else row.query

    with RunProgress() as progress:
        progress.label(f"pii-bench mask: {corpus.name}")
        progress.started(corpus.done, corpus.total)
        for masked in maskings(texts()):
            row, write = waiting.popleft()
            if masked.failure:
                kept = "what precedes it is kept: run again to go on there"
                raise MaskingError(f"{row.where}: {masked.failure} ({kept})")
            write(row.encode(masked.text))
            counts.include(masked.counts)
            progress.advanced(failed=False)
    corpus.finish()
    return counts
