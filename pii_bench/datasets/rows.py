"""Stream the rows of tables as objects: JSON Lines, a JSON list, CSV, Parquet."""

from __future__ import annotations

import codecs
import csv
import json
import re
import sys
from importlib import import_module
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from pii_bench.errors import InputFileError, MissingExtraError
from pii_bench.files import decode, open_binary, read_records, read_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pii_bench.files import BadLines

    Rows = Iterator[tuple[int, dict[str, Any]]]

BOM: Final = codecs.BOM_UTF8
_BATCH_SIZE: Final = 4096
_SEPARATOR: Final = re.compile(r"[\s,]*")


def csv_records(path: Path, offset: int) -> Iterator[tuple[int, list[str]]]:
    """Yield the last line and the cells of each row; blank lines are skipped."""
    # The default limit of 131,072 characters is too small for some texts.
    csv.field_size_limit(sys.maxsize)
    with open_binary(path) as file:
        file.seek(offset)
        lines = (decode(line, path, number) for number, line in enumerate(file, start=1))
        # Otherwise an unclosed quote would swallow all rows after it.
        reader = csv.reader(lines, strict=True)
        try:
            yield from ((reader.line_num, cells) for cells in reader if cells)
        except csv.Error as error:
            what = f"not valid CSV: {error}"
            raise InputFileError(path, what, line=reader.line_num) from None


def parquet_schema(path: Path) -> Any:
    """Return the schema of a Parquet file.

    Raises:
        InputFileError: the file cannot be read.
        MissingExtraError: pyarrow is not installed.
    """
    arrow, parquet = import_arrow()
    with open_binary(path) as file:
        try:
            return parquet.read_schema(file)
        except (OSError, arrow.ArrowInvalid):
            raise InputFileError(path, "not a Parquet file") from None


def parquet_batches(path: Path, columns: Sequence[str] | None = None) -> Iterator[Any]:
    """Yield the rows of a Parquet file in batches of some thousand.

    Raises:
        InputFileError: the file cannot be read.
        MissingExtraError: pyarrow is not installed.
    """
    arrow, parquet = import_arrow()
    try:
        with parquet.ParquetFile(path) as file:
            yield from file.iter_batches(_BATCH_SIZE, columns=columns)
    except (OSError, arrow.ArrowException):
        raise InputFileError(path, "not a readable Parquet file") from None


def import_arrow() -> tuple[Any, Any]:
    """Import pyarrow and its Parquet module.

    Raises:
        MissingExtraError: pyarrow is not installed.
    """
    try:
        return import_module("pyarrow"), import_module("pyarrow.parquet")
    except ModuleNotFoundError:
        raise MissingExtraError("what reads Parquet", "pip install pyarrow") from None


def _json(path: Path, bad: BadLines) -> Rows:
    """Read a JSON list, or JSON Lines in a file with the suffix `.json`."""
    with open_binary(path) as file:
        start = file.read(1024).removeprefix(BOM).lstrip()
    return _json_list(path, bad) if start.startswith(b"[") else read_records(path, bad)


def _json_list(path: Path, bad: BadLines) -> Rows:
    """Parse the rows one by one; only the text is held in memory."""
    text = read_text(path)
    decoder = json.JSONDecoder()
    position, line = text.index("[") + 1, 1
    while True:
        start = _SEPARATOR.match(text, position).end()  # type: ignore[union-attr] # always matches
        line += text.count("\n", position, start)
        if text.startswith("]", start):
            return
        try:
            row, position = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            # A chained exception would contain the text.
            raise InputFileError(path, "not valid JSON", line=line) from None
        if isinstance(row, dict):
            yield line, row
        else:
            bad.add(line, "a row must be a JSON object")
        line += text.count("\n", start, position)


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


ROWS: Final[Mapping[str, Callable[[Path, BadLines], Rows]]] = {
    ".jsonl": read_records,
    ".ndjson": read_records,
    ".json": _json,
    ".csv": _csv,
    ".parquet": _parquet,
}
"""By suffix, readers that yield (1-based line, row); rows that are no objects are added to `bad`.

In CSV the line is the last one of the row, in Parquet the number of the row. They raise
InputFileError if the file cannot be read or is truncated, MissingExtraError without pyarrow.
"""
