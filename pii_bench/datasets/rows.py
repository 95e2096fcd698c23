"""Rows of tables as objects, one at a time: JSON Lines, a JSON list, CSV, Parquet."""

from __future__ import annotations

import codecs
import csv
import io
import json
import re
import sys
from functools import partial
from importlib import import_module
from itertools import chain
from types import MappingProxyType
from typing import IO, TYPE_CHECKING, Any, Final

from pii_bench.errors import InputFileError, MissingExtraError
from pii_bench.files import decode, open_binary, read_records

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pii_bench.files import BadLines

    Rows = Iterator[tuple[int, dict[str, Any]]]

BOM: Final = codecs.BOM_UTF8
_ROWS_AT_ONCE: Final = 4096
_AT_ONCE: Final = 1 << 20
_LONGEST_ROW: Final = 1 << 26
_BETWEEN: Final = re.compile(r"[\s,]*")


def read_rows(path: Path, bad: BadLines) -> Rows:
    """Yield (1-based line, row) of a file whose ending is one of `ROWS`.

    The line is the one on which a row of CSV ends, and in Parquet the number of the row.

    Args:
        path: of the file.
        bad: is told of rows that are none, which are then skipped.

    Raises:
        InputFileError: the file cannot be read, or breaks off in the middle.
        MissingExtraError: pyarrow is not installed.
    """
    return ROWS[path.suffix.lower()](path, bad)


def csv_records(path: Path, offset: int) -> Iterator[tuple[int, list[str]]]:
    """The last line of each row, and its cells; blank lines are skipped."""
    # A text may be longer than the 131,072 characters that the module takes as it comes.
    csv.field_size_limit(sys.maxsize)
    with open_binary(path) as file:
        file.seek(offset)
        lines = (decode(line, path, number) for number, line in enumerate(file, start=1))
        # Strict: a quote that is not closed would make one text of all rows behind it.
        reader = csv.reader(lines, strict=True)
        try:
            yield from ((reader.line_num, cells) for cells in reader if cells)
        except csv.Error as error:
            what = f"not valid CSV: {error}"
            raise InputFileError(path, what, line=reader.line_num) from None


def parquet_schema(path: Path) -> Any:
    """The schema of a Parquet file.

    Raises:
        InputFileError: it cannot be read.
        MissingExtraError: pyarrow is not installed.
    """
    arrow, parquet = import_arrow()
    with open_binary(path) as file:
        try:
            return parquet.read_schema(file)
        except (OSError, arrow.ArrowInvalid):
            raise InputFileError(path, "is no Parquet file") from None


def parquet_batches(path: Path, columns: Sequence[str] | None = None) -> Iterator[Any]:
    """Some thousand rows of a Parquet file at a time."""
    _, parquet = import_arrow()
    with parquet.ParquetFile(path) as file:
        yield from file.iter_batches(_ROWS_AT_ONCE, columns=columns)


def import_arrow() -> tuple[Any, Any]:
    """The package pyarrow, and its module for Parquet.

    Raises:
        MissingExtraError: it is not installed.
    """
    try:
        return import_module("pyarrow"), import_module("pyarrow.parquet")
    except ModuleNotFoundError:
        raise MissingExtraError("what reads Parquet", "pip install pyarrow") from None


def _json(path: Path, bad: BadLines) -> Rows:
    """A list, or lines that only end in `.json`."""
    with open_binary(path) as file:
        start = file.read(_AT_ONCE).removeprefix(BOM).lstrip()
    return _json_list(path, bad) if start.startswith(b"[") else read_records(path, bad)


def _json_list(path: Path, bad: BadLines) -> Rows:
    decoder = json.JSONDecoder()
    with io.TextIOWrapper(open_binary(path), encoding="utf-8-sig", newline="") as file:
        read = partial(_read, path, file)
        text = read(_AT_ONCE)
        place, line = text.index("[") + 1, 1
        while True:
            start = _BETWEEN.match(text, place).end()  # type: ignore[union-attr] # matches always
            line += text.count("\n", place, start)
            if text.startswith("]", start):
                return
            try:
                row, place = decoder.raw_decode(text, start)
            except (ValueError, RecursionError):
                # The row may go on behind what is read. What is chained would hold the text.
                text, place = text[start:], 0
                more = read(max(_AT_ONCE, len(text))) if len(text) < _LONGEST_ROW else ""
                if not more:
                    raise InputFileError(path, "not valid JSON", line=line) from None
                text += more
                continue
            if isinstance(row, dict):
                yield line, row
            else:
                bad.add(line, "a row must be a JSON object")
            line += text.count("\n", start, place)


def _read(path: Path, file: IO[str], size: int) -> str:
    try:
        return file.read(size)
    except UnicodeDecodeError:
        pass
    # Outside of the handler: what is chained holds the text.
    raise InputFileError(path, "not valid UTF-8")


def _csv(path: Path, bad: BadLines) -> Rows:
    with open_binary(path) as file:
        offset = len(BOM) if file.read(len(BOM)) == BOM else 0
    records = csv_records(path, offset)
    _, header = next(records, (1, []))
    for line, cells in records:
        if len(cells) == len(header):
            yield line, dict(zip(header, cells, strict=True))
        else:
            bad.add(line, "a row must have as many cells as the header")


def _parquet(path: Path, _: BadLines) -> Rows:
    parquet_schema(path)
    batches = (batch.to_pylist() for batch in parquet_batches(path))
    yield from enumerate(chain.from_iterable(batches), start=1)


ROWS: Final[Mapping[str, Callable[[Path, BadLines], Rows]]] = MappingProxyType(
    {
        ".jsonl": read_records,
        ".ndjson": read_records,
        ".json": _json,
        ".csv": _csv,
        ".parquet": _parquet,
    }
)
"""What reads the files of an ending."""
