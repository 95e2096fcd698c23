"""Tables with a column of texts: reading them row by row, and writing them with masked texts.

Masked rows are appended to `OUT.part`, so that an interrupted run resumes after the last complete
row. For JSON Lines and CSV this file becomes the output.
"""

from __future__ import annotations

import csv
import difflib
import io
import json
import re
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from pii_bench.datasets.rows import (
    BOM,
    csv_records,
    import_arrow,
    parquet_batches,
    parquet_schema,
)
from pii_bench.errors import InputFileError, PiiBenchError, UnknownNameError
from pii_bench.files import RecordError, encode, get, open_binary, read_places, replacing, writing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

_PARQUET_TEXTS: Final = ("string", "large_string")
_COLON: Final = re.compile(r":\s*")


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table; its `repr` hides the texts.

    Attributes:
        where: file and line or row number, for messages.
        text: the text to mask; None for a missing value.
        query: None without a query column.
        encode: returns the row for `OUT.part` with the given masked text.
    """

    where: str
    text: str | None = field(repr=False)
    query: str | None = field(repr=False)
    encode: Callable[[str | None], str] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Table:
    """A file of rows.

    Attributes:
        rows: iterates over the rows from the beginning; raises `InputFileError`.
        finish: turns a complete `OUT.part` into the output.
        head: the bytes before the first row of `OUT.part`.
        quoted: True if line ends inside quotes do not end a row.
    """

    rows: Callable[[], Iterator[Row]]
    finish: Callable[[Path, Path], None]
    head: bytes = field(default=b"", repr=False)
    quoted: bool = False


def open_table(path: Path, column: str, query_column: str | None = None) -> Table:
    """Open a .jsonl, .csv or .parquet file.

    Raises:
        InputFileError: the file cannot be read or lacks a column.
        MissingExtraError: pyarrow is needed and not installed.
        UnknownNameError: the file has another ending.
    """
    ending = path.suffix.lower()
    if ending not in KINDS:
        raise UnknownNameError("ending of a table", ending, KINDS)
    return KINDS[ending](path, column, query_column)


def begin(table: Table, part: Path, *, force: bool) -> int:
    """Keep the complete rows of `OUT.part`, or none with `force`, and return their number.

    Raises:
        PiiBenchError: `OUT.part` belongs to another table.
        ResultsError: `OUT.part` cannot be written.
    """
    rows = quotes = 0
    with writing(part), part.open("w+b" if force or not part.exists() else "r+b") as file:
        start = file.read(len(table.head))
        if not table.head.startswith(start):
            raise PiiBenchError(f"{part}: belongs to another table; --force starts again")
        file.write(table.head[len(start) :])
        position = end = file.seek(len(table.head))
        for line in file:
            position += len(line)
            quotes += line.count(b'"')
            if line.endswith(b"\n") and not (table.quoted and quotes % 2):
                rows, end = rows + 1, position
        file.truncate(end)
    return rows


def append(part: Path, row: str) -> None:
    """Append an encoded row.

    Raises:
        ResultsError: the row cannot be written; `begin` removes an incomplete one.
    """
    with writing(part), part.open("ab") as file:
        file.write(encode(row))


def _rename(part: Path, out: Path) -> None:
    with writing(out):
        part.replace(out)


def _json_lines(path: Path, column: str, query_column: str | None) -> Table:
    def rows() -> Iterator[Row]:
        for line, _, raw, record in read_places(path):
            try:
                text = _cell(record, column)
                query = None if query_column is None else _cell(record, query_column) or ""
            except RecordError as error:
                raise InputFileError(path, str(error), line=line) from None
            written = raw.decode("utf-8-sig").strip()
            yield Row(f"{path}:{line}", text, query, partial(_json_line, written, column))

    return Table(rows, _rename)


def _cell(record: dict[str, Any], column: str) -> str | None:
    # A null is a missing value, but a missing key may be a misspelt column.
    return None if record.get(column, "") is None else get(record, column, str)


def _json_line(line: str, column: str, masked: str | None) -> str:
    """Return a JSON object with another value of the column, and all else as it is written.

    A parsed number such as 1e400 could not be written again.
    """
    scan = json.JSONDecoder().raw_decode
    parts, copied, place = [], 0, line.find('"')
    while place >= 0:
        key, end = scan(line, place)
        start = next(_COLON.finditer(line, end)).end()
        _, end = scan(line, start)
        # Also an earlier value of a key that occurs twice, which a parser drops.
        if key == column:
            parts += [line[copied:start], json.dumps(masked, ensure_ascii=False)]
            copied = end
        place = line.find('"', end)
    return "".join(parts) + line[copied:] + "\n"


def _csv(path: Path, column: str, query_column: str | None) -> Table:
    with open_binary(path) as file:
        first = file.readline()
    bom = BOM if first.startswith(BOM) else b""
    line_end = "\r\n" if first.endswith(b"\r\n") else "\n"
    _, header = next(csv_records(path, len(bom)), (1, []))
    place = _place(path, header, column)
    query_place = None if query_column is None else _place(path, header, query_column)

    def rows() -> Iterator[Row]:
        records = islice(csv_records(path, len(bom)), 1, None)
        for number, (line, cells) in enumerate(records, start=1):
            if len(cells) != len(header):
                what = f"row {number} has {len(cells)} cells, the header {len(header)}"
                raise InputFileError(path, what, line=line)
            query = None if query_place is None else cells[query_place]
            write = partial(_csv_row, cells, place, line_end)
            yield Row(f"{path}: row {number}", cells[place], query, write)

    head = bom + _csv_row(header, place, line_end, column).encode()
    return Table(rows, _rename, head, quoted=True)


def _csv_row(cells: Sequence[str], place: int, line_end: str, masked: str | None) -> str:
    line = io.StringIO(newline="")
    # With another line terminator, the writer would not quote a carriage return.
    writer = csv.writer(line, lineterminator="\r\n")
    writer.writerow([*cells[:place], masked or "", *cells[place + 1 :]])
    return line.getvalue().removesuffix("\r\n") + line_end


def _parquet(path: Path, column: str, query_column: str | None) -> Table:
    """Keep masked texts as JSON lines in `OUT.part`: a partial Parquet file is unreadable."""
    arrow, parquet = import_arrow()
    schema = parquet_schema(path)
    columns = [column] if query_column is None else [column, query_column]
    for name in columns:
        kind = str(schema.field(_place(path, schema.names, name)).type)
        if kind not in _PARQUET_TEXTS:
            allowed = " or ".join(_PARQUET_TEXTS)
            raise InputFileError(path, f"column {name!r} holds {kind}; allowed: {allowed}")

    def rows() -> Iterator[Row]:
        number = 0
        for batch in parquet_batches(path, columns):
            for record in batch.to_pylist():
                number += 1
                query = None if query_column is None else record[query_column] or ""
                where = f"{path}: row {number}"
                yield Row(where, record[column], query, lambda masked: f"{json.dumps(masked)}\n")

    def finish(part: Path, out: Path) -> None:
        place = schema.names.index(column)
        with (
            writing(out),
            part.open("rb") as lines,
            replacing(out) as file,
            parquet.ParquetWriter(file, schema) as writer,
        ):
            for batch in parquet_batches(path):
                texts = [json.loads(line) for line in islice(lines, batch.num_rows)]
                masked = arrow.array(texts, type=schema.field(place).type)
                writer.write_batch(batch.set_column(place, schema.field(place), masked))
        with writing(part):
            part.unlink()

    return Table(rows, finish)


def _place(path: Path, names: Sequence[str], name: str) -> int:
    """Return the index of the column with a name.

    The error does not list the columns: without a header, the first row consists of texts.
    """
    if names.count(name) == 1:
        return names.index(name)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    hint = f"; did you mean {near[0]!r}?" if near and name not in names else ""
    raise InputFileError(path, f"{names.count(name)} columns are named {name!r}{hint}")


KINDS: Final[Mapping[str, Callable[[Path, str, str | None], Table]]] = {
    ".jsonl": _json_lines,
    ".csv": _csv,
    ".parquet": _parquet,
}
"""What opens a table, by the ending of its file."""
