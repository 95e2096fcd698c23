"""Masks many texts, a folder or a column of a table, and goes on where an earlier run stopped."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Protocol

from pii_bench.errors import InputFileError
from pii_bench.files import read_text, write_whole
from pii_bench.masking.tables import Row, append, begin, open_table
from pii_bench.runs.mask_text import Counts, MaskingError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pii_bench.runs.mask_text import MaskedText

    Maskings = Callable[[Iterator[tuple[str | None, str]]], Iterator[MaskedText]]


class Progress(Protocol):
    """Is told how far the masking of a corpus is."""

    def label(self, text: str) -> None:
        """What is masked."""
        ...

    def started(self, done: int, total: int) -> None:
        """How many texts there are, of which an earlier run has done some."""
        ...

    def advanced(self, *, failed: bool) -> None:
        """One text more is masked."""
        ...


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


def corpus_of_folder(folder: Path, out: Path, *, force: bool) -> Corpus:
    """Every *.txt file below a folder; what is in `out` already is left out.

    Args:
        folder: with the texts.
        out: folder of the masked texts, under the same names.
        force: mask anew what is there already.

    Raises:
        InputFileError: one folder is in the other, or there are no texts.
    """
    inner, outer = folder.resolve(), out.resolve()
    # Masked texts would be masked again, or unmasked ones taken for masked.
    if inner.is_relative_to(outer) or outer.is_relative_to(inner):
        raise InputFileError(out, f"neither this nor {folder} may be in the other")
    texts = sorted(path for path in folder.rglob("*.txt") if path.is_file())
    if not texts:
        raise InputFileError(folder, "no *.txt file is below it")
    pairs = [(path, out / path.relative_to(folder)) for path in texts]
    left = [pair for pair in pairs if force or not pair[1].exists()]
    rows = (
        (Row(str(path), read_text(path), None, _as_it_is), partial(write_whole, target))
        for path, target in left
    )
    return Corpus(str(folder), len(pairs), len(pairs) - len(left), rows, lambda: None)


def _as_it_is(masked: str | None) -> str:
    return masked or ""


def corpus_of_table(
    path: Path, out: Path, column: str, query_column: str | None, *, force: bool
) -> Corpus:
    """A column of a table; rows that `OUT.part` has already are left out.

    Args:
        path: of the table.
        out: of the masked table, with the same ending.
        column: of the texts.
        query_column: of their queries; None where all have the same.
        force: begin anew.

    Raises:
        InputFileError: the table cannot be read, or `out` not be begun.
    """
    if out.suffix.lower() != path.suffix.lower():
        raise InputFileError(out, f"must end in {path.suffix!r} as the input does")
    if out.resolve() == path.resolve():
        raise InputFileError(out, "is the input itself")
    part = out.with_name(f"{out.name}.part")
    if out.exists() and not force and not part.exists():
        raise InputFileError(out, "is there already; --force replaces it")
    table = open_table(path, column, query_column)
    # Reads all of it: a row that is no good is named before the first text is masked.
    total = sum(1 for _ in table.rows())
    done = begin(table, part, force=force)
    if done > total:
        raise InputFileError(part, f"has {done} rows, {path} only {total}; --force begins anew")
    rows = ((row, partial(append, part)) for row in islice(table.rows(), done, None))
    return Corpus(str(path), total, done, rows, partial(table.finish, part, out))


def mask_corpus(
    corpus: Corpus, query: str | None, maskings: Maskings, progress: Progress
) -> Counts:
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
