"""Tables with a column of texts: read row by row, and written again with the texts masked.

What is masked already is in `OUT.part`, one write a row, so that a run that was stopped goes on
behind the last complete row. For JSON Lines and CSV it is the beginning of the output itself.
"""

from __future__ import annotations

import csv
import difflib
import io
import json
import sys
from dataclasses import dataclass, field
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Protocol

from pii_bench.errors import InputFileError, PiiBenchError, UnknownNameError
from pii_bench.files import decode, writing
from pii_bench.jsonl import RecordError, get, read_records

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

_BOM: Final = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Columns:
    """The names of the columns with the texts and, where each has its own, the queries."""

    text: str
    query: str | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table.

    Attributes:
        where: the file and the row, for messages.
        text: what is to be masked; None where the table has no value.
        query: that of the row; None where the table has no such column.
        record: all of the row, as its table reads it.
    """

    where: str
    text: str | None = field(repr=False)
    query: str | None = field(repr=False)
    record: Any = field(repr=False)


class Table(Protocol):
    """A file with rows."""

    @property
    def head(self) -> bytes:
        """What precedes the first row in `OUT.part`."""

    def rows(self) -> Iterator[Row]:
        """Read it from the beginning, one row at a time.

        Raises:
            InputFileError: a row that cannot be read.
        """

    def encode(self, row: Row, masked: str | None) -> bytes:
        """A row of `OUT.part`."""

    def complete(self, part: Path) -> tuple[int, int]:
        """How many complete rows `OUT.part` has, and how many bytes they and the head take."""

    def finish(self, part: Path, out: Path) -> None:
        """Turn `OUT.part`, which has all rows, into the output."""


def open_table(path: Path, columns: Columns) -> Table:
    """Open a file as its ending says.

    Raises:
        InputFileError: it cannot be read, or has no such column.
        UnknownNameError: another ending.
    """
    ending = path.suffix.lower()
    if ending not in _KINDS:
        raise UnknownNameError("ending of a table", ending, _KINDS)
    return _KINDS[ending](path, columns)


class _Lines:
    """What tables have in common whose `OUT.part` has one line a row."""

    head = b""
    quoted = False

    def complete(self, part: Path) -> tuple[int, int]:
        """As `Table` says. A line that a crash tore has no end, or its quotes are open."""
        rows = quotes = 0
        with part.open("rb") as file:
            position = end = file.seek(len(self.head))
            for line in file:
                position += len(line)
                quotes += line.count(b'"')
                if line.endswith(b"\n") and not (self.quoted and quotes % 2):
                    rows, end = rows + 1, position
        return rows, end

    def finish(self, part: Path, out: Path) -> None:
        """As `Table` says."""
        with writing(out):
            part.replace(out)


class _JsonLines(_Lines):
    def __init__(self, path: Path, columns: Columns) -> None:
        self._path, self._columns = path, columns

    def rows(self) -> Iterator[Row]:
        for line, record in read_records(self._path):
            try:
                has_null = record.get(self._columns.text, "") is None
                text = None if has_null else get(record, self._columns.text, str)
                query = self._columns.query and get(record, self._columns.query, str)
            except RecordError as error:
                raise InputFileError(self._path, str(error), line=line) from None
            yield Row(f"{self._path}:{line}", text, query, record)

    def encode(self, row: Row, masked: str | None) -> bytes:
        line = json.dumps(row.record | {self._columns.text: masked}, ensure_ascii=False)
        # Half a surrogate pair, which UTF-8 cannot hold, turns into its JSON escape.
        return f"{line}\n".encode("utf-8", "backslashreplace")


class _Csv(_Lines):
    quoted = True

    def __init__(self, path: Path, columns: Columns) -> None:
        self._path = path
        # A text may be longer than the 131,072 characters that the module takes as it comes.
        csv.field_size_limit(sys.maxsize)
        with _open(path) as file:
            first = file.readline()
        self._bom = _BOM if first.startswith(_BOM) else b""
        self._line_end = "\r\n" if first.endswith(b"\r\n") else "\n"
        header = next((cells for _, cells in self._records()), [])
        self.head = self._bom + self._line(header)
        self._text = _place(path, header, columns.text)
        self._query = None if columns.query is None else _place(path, header, columns.query)
        self._needed = max(self._text, self._query or 0)

    def rows(self) -> Iterator[Row]:
        for number, (line, cells) in enumerate(islice(self._records(), 1, None), start=1):
            if len(cells) <= self._needed:
                what = f"row {number} has {len(cells)} cells, too few for the columns asked for"
                raise InputFileError(self._path, what, line=line)
            query = None if self._query is None else cells[self._query]
            yield Row(f"{self._path}: row {number}", cells[self._text], query, cells)

    def encode(self, row: Row, masked: str | None) -> bytes:
        cells = [*row.record]
        cells[self._text] = masked or ""
        return self._line(cells)

    def _line(self, cells: Iterable[str]) -> bytes:
        line = io.StringIO(newline="")
        # With another end of the line a cell that holds a carriage return is not quoted.
        csv.writer(line, lineterminator="\r\n").writerow(cells)
        return (line.getvalue().removesuffix("\r\n") + self._line_end).encode()

    def _records(self) -> Iterator[tuple[int, list[str]]]:
        """The last line of each row and its cells; blank lines are skipped."""
        with _open(self._path) as file:
            file.seek(len(self._bom))
            lines = (decode(line, self._path, number) for number, line in enumerate(file, 1))
            # Strict: an open quote would make one text of all the rows behind it.
            reader = csv.reader(lines, strict=True)
            try:
                yield from ((reader.line_num, cells) for cells in reader if cells)
            except csv.Error as error:
                raise InputFileError(
                    self._path, f"not valid CSV: {error}", line=reader.line_num
                ) from None


def _open(path: Path) -> io.BufferedReader:
    try:
        return path.open("rb")
    except OSError as error:
        raise InputFileError(path, error.strerror or "cannot be read") from error


def _place(path: Path, names: Sequence[str], name: str) -> int:
    """The only column of a name. No other is named: a file without header begins with texts."""
    if names.count(name) == 1:
        return names.index(name)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    hint = f"; did you mean {near[0]!r}?" if near and name not in names else ""
    raise InputFileError(path, f"{names.count(name)} columns are named {name!r}{hint}", line=1)


_KINDS: Final[Mapping[str, Callable[[Path, Columns], Table]]] = MappingProxyType(
    {".jsonl": _JsonLines, ".csv": _Csv}
)
ENDINGS: Final = tuple(_KINDS)


def begin(table: Table, part: Path, *, force: bool) -> int:
    """Make `OUT.part` ready for the next row: what is complete in it stays.

    Args:
        table: the input.
        part: made where it is not there.
        force: begin anew.

    Returns:
        How many rows are masked already.

    Raises:
        PiiBenchError: it was begun with another table.
        ResultsError: it cannot be written.
    """
    with writing(part):
        if force or not part.exists():
            part.write_bytes(b"")
        with part.open("r+b") as file:
            start = file.read(len(table.head))
            if not table.head.startswith(start):
                raise PiiBenchError(f"{part}: was begun with another table; --force begins anew")
            # The head may be as torn as a row.
            if start != table.head:
                file.write(table.head[len(start) :])
            rows, size = table.complete(part)
            file.truncate(size)
    return rows


def append(part: Path, row: bytes) -> None:
    """Write one row more.

    Raises:
        ResultsError: it cannot be written; what is torn of it `begin` cuts off.
    """
    with writing(part), part.open("ab") as file:
        file.write(row)
