"""Masking of a folder of texts or a column of a table, resumable."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from pii_bench.errors import InputFileError, PiiBenchError
from pii_bench.files import read_text, write_whole
from pii_bench.masking.tables import Row, append, begin, open_table
from pii_bench.runs.mask_text import MaskingCounts, MaskingError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pii_bench.runs.mask_text import MaskedText
    from pii_bench.runs.progress import Progress

    Maskings = Callable[[Iterator[tuple[str | None, str]]], Iterator[MaskedText]]


@dataclass(frozen=True, slots=True)
class Corpus:
    """Texts to mask.

    Attributes:
        name: name shown to the user.
        total: number of texts.
        done: number of texts that an earlier run has masked.
        rows: the other texts, each with the function that writes its encoded masked text.
        finish: called when all texts are masked.
    """

    name: str
    total: int
    done: int
    rows: Iterator[tuple[Row, Callable[[str], None]]]
    finish: Callable[[], None]


def corpus_of_folder(folder: Path, out: Path, *, force: bool) -> Corpus:
    """Return all *.txt files below a folder that are not in `out` yet.

    Args:
        folder: folder of the texts.
        out: folder for the masked texts, under the same names.
        force: mask all texts again.

    Raises:
        InputFileError: one folder is inside the other, or there are no texts.
    """
    inner, outer = folder.resolve(), out.resolve()
    # Masked texts would be masked again, or unmasked ones mistaken for masked ones.
    if inner.is_relative_to(outer) or outer.is_relative_to(inner):
        raise InputFileError(out, f"must not be inside {folder}, nor contain it")
    texts = sorted(path for path in folder.rglob("*.txt") if path.is_file())
    if not texts:
        raise InputFileError(folder, "contains no *.txt file")
    targets = {path: out / path.relative_to(folder) for path in texts}
    waiting = [path for path in texts if force or not targets[path].is_file()]
    rows = (
        (Row(str(path), read_text(path), None, _plain_text), partial(write_whole, targets[path]))
        for path in waiting
    )
    return Corpus(str(folder), len(texts), len(texts) - len(waiting), rows, lambda: None)


def _plain_text(masked: str | None) -> str:
    return masked or ""


def corpus_of_table(
    path: Path, out: Path, column: str, query_column: str | None, *, force: bool
) -> Corpus:
    """Return the rows of a table that are not in `OUT.part` yet.

    Args:
        path: the table.
        out: the masked table, with the same suffix.
        column: column of the texts.
        query_column: column of the queries; None if all texts share one query.
        force: start again from the first row.

    Raises:
        InputFileError: the table cannot be read, or `out` cannot be used.
        PiiBenchError: a row with a text has a blank query.
    """
    if out.suffix.lower() != path.suffix.lower():
        raise InputFileError(out, f"must end in {path.suffix!r}, like the input")
    if out.resolve() == path.resolve():
        raise InputFileError(out, "is the input itself")
    part = out.with_name(f"{out.name}.part")
    if out.exists() and not force and not part.exists():
        raise InputFileError(out, "exists already; --force replaces it")
    table = open_table(path, column, query_column)
    total = 0
    # Reading all rows reports a bad one before the first text is masked.
    for row in table.rows():
        total += 1
        if (row.text or "").strip() and row.query is not None and not row.query.strip():
            what = "the query is blank: what will be asked about the text?"
            raise PiiBenchError(f"{row.where}: {what}")
    done = begin(table, part, force=force)
    if done > total:
        raise InputFileError(part, f"has {done} rows, {path} only {total}; --force starts again")
    rows = ((row, partial(append, part)) for row in islice(table.rows(), done, None))
    return Corpus(str(path), total, done, rows, partial(table.finish, part, out))


def mask_corpus(
    corpus: Corpus, query: str | None, maskings: Maskings, progress: Progress
) -> MaskingCounts:
    """Mask the remaining texts, each for its own query or else for `query`, and count the values.

    Raises:
        MaskingError: the system fails on a text; the texts before it are saved.
        PiiBenchError: a text cannot be read, or a masked text cannot be written.
    """
    counts = MaskingCounts()
    # Rows that were handed to the masker and have no result yet.
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
            hint = "the texts before it are saved: run again to continue"
            raise MaskingError(f"{row.where}: {masked.failure} ({hint})")
        write(row.encode(masked.text))
        counts.include(masked.counts)
        progress.advanced(failed=False)
    corpus.finish()
    return counts
