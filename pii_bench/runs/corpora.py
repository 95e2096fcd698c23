"""Masking of a folder of texts or a column of a table, resumable."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from functools import partial
from itertools import islice, tee
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from pii_bench.errors import InputFileError, PiiBenchError
from pii_bench.files import read_object, read_text, write_json, write_whole, writing
from pii_bench.masking.tables import Row, append, begin, open_table
from pii_bench.runs.mask_text import MaskingCounts, MaskingError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pii_bench.runs.mask_text import MaskedText
    from pii_bench.runs.progress import Progress

    Maskings = Callable[[Iterator[tuple[str | None, str]]], Iterator[MaskedText]]


@dataclass(frozen=True, slots=True)
class Corpus:
    """Texts to mask.

    Attributes:
        name: shown to the user.
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


@dataclass(frozen=True, slots=True)
class TableRun:
    """What all runs that fill one `OUT.part` must share; stored next to it, in `OUT.part.json`.

    Attributes:
        query_column: None if all texts share one query.
        query_sha256: SHA-256 of the shared query; None without one.
        label_map: the path of `--label-map`.
    """

    column: str
    query_column: str | None
    query_sha256: str | None
    system: str
    keep: str
    rewrite: bool
    strategy: str | None
    label_map: str | None


def corpus_of_folder(folder: Path, out: Path, *, force: bool) -> Corpus:
    """Return all *.txt files below a folder that have no file of the same name in `out` yet.

    With `force` the masked texts of an earlier run are removed first.

    Raises:
        InputFileError: one folder is inside the other, there are no texts, or a subfolder cannot
            be read.
        ResultsError: a masked text cannot be removed.
    """
    inner, outer = folder.resolve(), out.resolve()
    # Masked texts would be masked again, or unmasked ones mistaken for masked ones.
    if inner.is_relative_to(outer) or outer.is_relative_to(inner):
        raise InputFileError(out, f"must not be inside {folder}, nor contain it")
    texts = _texts_below(folder)
    if not texts:
        raise InputFileError(folder, "contains no *.txt file")
    targets = {path: out / path.relative_to(folder) for path in texts}
    if force:
        # All of them now: a later run without `force` continues, and must not skip any.
        for target in filter(Path.is_file, targets.values()):
            with writing(target):
                target.unlink()
    waiting = [path for path in texts if not targets[path].is_file()]

    def rows() -> Iterator[tuple[Row, Callable[[str], None]]]:
        for path in waiting:
            row = Row(str(path), read_text(path), None, lambda masked: masked or "")
            yield row, partial(write_whole, targets[path])

    return Corpus(str(folder), len(texts), len(texts) - len(waiting), rows(), lambda: None)


def _texts_below(folder: Path) -> list[Path]:
    def refuse(error: OSError) -> NoReturn:
        raise error

    try:
        # Not `rglob`, which skips the folders that it cannot read.
        paths = [
            Path(parent, name)
            for parent, _, names in os.walk(folder, onerror=refuse)
            for name in names
        ]
        return sorted(path for path in paths if path.name.endswith(".txt") and path.is_file())
    except OSError as error:
        raise InputFileError(Path(error.filename), error.strerror or "cannot be read") from error


def corpus_of_table(path: Path, out: Path, run: TableRun, *, force: bool) -> Corpus:
    """Return the rows of a table that are not in `OUT.part` yet.

    With `force` masking starts again from the first row.

    Raises:
        InputFileError: the table cannot be read, `out` cannot be used, or another run began
            `OUT.part`.
        PiiBenchError: a row with a text has a blank query.
    """
    if out.suffix.lower() != path.suffix.lower():
        raise InputFileError(out, f"must end in {path.suffix!r}, like the input")
    if out.resolve() == path.resolve():
        raise InputFileError(out, "is the input itself")
    part = out.with_name(f"{out.name}.part")
    record = out.with_name(f"{part.name}.json")
    if out.exists() and not force and not part.exists():
        raise InputFileError(out, "exists already; --force replaces it")
    table = open_table(path, run.column, run.query_column)
    if part.exists() and record.exists() and not force:
        _check_same(run, part, record)
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
    # Only now: a crash before `begin` must not leave the rows of another run with this record.
    write_json(record, run)

    def finish() -> None:
        table.finish(part, out)
        with writing(record):
            record.unlink()

    rows = ((row, partial(append, part)) for row in islice(table.rows(), done, None))
    return Corpus(str(path), total, done, rows, finish)


def _check_same(run: TableRun, part: Path, record: Path) -> None:
    begun = read_object(record, "record of a run", dict)
    for name, value in asdict(run).items():
        before = begun.get(name)
        if before == value:
            continue
        if name == "query_sha256":
            what = "query"
        else:
            what = f"{name.replace('_', ' ')} ({before!r}, now {value!r})"
        raise InputFileError(part, f"was begun with another {what}; --force starts again")


def mask_corpus(
    corpus: Corpus, query: str | None, maskings: Maskings, progress: Progress
) -> MaskingCounts:
    """Mask the remaining texts, each for its own query or else for `query`, and count the values.

    Raises:
        MaskingError: the system fails on a text; the texts before it are saved.
        PiiBenchError: a text cannot be read, or a masked text cannot be written.
    """
    counts = MaskingCounts()
    # Values in the query that all texts share.
    shared: set[tuple[str, str]] = set()
    # The masker may read ahead: `rows` keeps those that have no result yet.
    asked, rows = tee(corpus.rows)
    texts = ((row.text, (query or "") if row.query is None else row.query) for row, _ in asked)
    progress.label(f"pii-bench mask: {corpus.name}")
    progress.started(corpus.done, corpus.total)
    for masked, (row, write) in zip(maskings(texts), rows, strict=True):
        if masked.failure:
            hint = "the texts before it are saved: run again to continue"
            raise MaskingError(f"{row.where}: {masked.failure} ({hint})")
        write(row.encode(masked.text))
        counts.include(masked.counts)
        if row.query is None:
            shared |= masked.in_query
        else:
            counts.add_query(masked.in_query)
        progress.advanced(failed=False)
    counts.add_query(shared)
    corpus.finish()
    return counts
