"""Reading JSON with errors that name the file and the line, never its text."""

from __future__ import annotations

import json
from typing import IO, TYPE_CHECKING, Any, Final, TypeVar

import jsonlines

from pii_bench.errors import BadLinesError, InputFileError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

T = TypeVar("T")

_DEEPEST: Final = 50


class RecordError(ValueError):
    """A record that is not of its format; the reader of the file adds file and line."""


class BadLines:
    """Collects what is wrong with the lines of a file, to tell all of it at once.

    Args:
        path: of the file.
    """

    _LISTED: Final = 20

    def __init__(self, path: Path) -> None:
        self._path = path
        self._first: list[tuple[int, str]] = []
        self._count = 0

    def add(self, line: int, what: str) -> None:
        """Note a bad line, 1-based, and what is wrong with it."""
        self._count += 1
        if len(self._first) < self._LISTED:
            self._first.append((line, what))

    def raise_any(self) -> None:
        """Raise if there is a bad line.

        Raises:
            InputFileError: the one bad line, or a `BadLinesError` of several.
        """
        if self._count == 1:
            line, what = self._first[0]
            raise InputFileError(self._path, what, line=line)
        if self._count:
            raise BadLinesError(self._path, sorted(self._first), self._count)


def read_records(path: Path, bad: BadLines | None = None) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (1-based line, record) of a file; blank lines are skipped.

    Args:
        path: of the file.
        bad: is told of lines that are no JSON objects, which are then skipped; None to raise
            at the first one.

    Raises:
        InputFileError: the file cannot be read, or a line is no JSON object.
    """
    for line, _, record in read_places(path, bad):
        yield line, record


def read_places(
    path: Path, bad: BadLines | None = None
) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """Yield (1-based line, its first byte, record), else as `read_records`."""
    offset = 0
    with _open(path) as file:
        for line, raw in enumerate(file, start=1):
            start, offset = offset, offset + len(raw)
            if not raw.strip():
                continue
            try:
                record = _record(raw)
            except RecordError as error:
                if bad is None:
                    raise InputFileError(path, str(error), line=line) from None
                bad.add(line, str(error))
            else:
                yield line, start, record


def read_record(path: Path, line: int, offset: int) -> dict[str, Any]:
    """Read one line that `read_places` told of.

    Raises:
        InputFileError: the file cannot be read, or has changed.
    """
    with _open(path) as file:
        file.seek(offset)
        try:
            return _record(file.readline())
        except RecordError as error:
            raise InputFileError(path, str(error), line=line) from None


def _open(path: Path) -> IO[bytes]:
    try:
        return path.open("rb")
    except OSError as error:
        raise InputFileError(path, error.strerror or "cannot be read") from error
    except ValueError as error:
        # A null character, or one that the file system cannot write.
        raise InputFileError(path, "no file has such a name") from error


def _record(raw: bytes) -> dict[str, Any]:
    try:
        record = jsonlines.Reader([raw]).read(allow_none=True)
    except jsonlines.InvalidLineError as error:
        # The chained exceptions hold the line itself.
        raise RecordError(_reason(error)) from None
    except RecursionError:
        raise RecordError("not valid JSON (nested too deep)") from None
    if not isinstance(record, dict):
        raise RecordError(f"a line must be a JSON object, not {_json_name(record)}")
    return record


def read_object(path: Path, what: str, build: Callable[[dict[str, Any]], T]) -> T:
    """Read a file that holds one JSON object.

    Args:
        path: of the file.
        what: it should be, for the message.
        build: makes the value of the object; may raise ValueError.

    Raises:
        InputFileError: the file cannot be read, or is not of its format.
    """
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(record, dict):
            raise RecordError("must be a JSON object")
        if _is_deep(record):
            raise RecordError("nested too deep")
        return build(record)
    except OSError as error:
        reason = error.strerror or "cannot be read"
        raise InputFileError(path, f"no {what}: {reason}") from error
    except RecursionError:
        raise InputFileError(path, f"no {what}: nested too deep") from None
    # RecordError and the errors of JSON and of UTF-8 are all of this kind.
    except ValueError as error:
        raise InputFileError(path, f"no {what}: {error}") from error


def get(record: dict[str, Any], key: str, kind: type[T], owner: str = "record") -> T:
    """A required value of a record.

    Raises:
        RecordError: absent, or of another kind.
    """
    value = record.get(key)
    # Not isinstance: a boolean is no number in JSON.
    if type(value) is kind:
        return value
    if key not in record:
        raise RecordError(f"{owner}: {key!r} is missing")
    raise RecordError(f"{owner}: {key!r} must be {_NAMES[kind]}, not {_json_name(value)}")


def get_objects(record: dict[str, Any], key: str, owner: str = "record") -> list[dict[str, Any]]:
    """A required list of objects.

    Raises:
        RecordError: absent, no list, or a member that is no object.
    """
    values = get(record, key, list, owner)
    for number, value in enumerate(values):
        if not isinstance(value, dict):
            raise RecordError(
                f"{owner}: {key}[{number}] must be an object, not {_json_name(value)}"
            )
    return values


def _is_deep(value: object) -> bool:
    """Whether a value is nested deeper than our own files ever are."""
    level: list[Any] = [value]
    for _ in range(_DEEPEST):
        inner = [each.values() if isinstance(each, dict) else each for each in level]
        level = [each for values in inner for each in values if isinstance(each, (dict, list))]
    return bool(level)


def _reason(error: jsonlines.InvalidLineError) -> str:
    match error.__cause__:
        case UnicodeDecodeError(start=start):
            return f"not valid UTF-8 (byte {start} of the line)"
        case json.JSONDecodeError(msg=what, colno=column):
            return f"not valid JSON (column {column}: {what})"
        case _:
            return "not valid JSON (a number is too long)"


_NAMES: dict[type[Any], str] = {
    dict: "an object",
    list: "a list",
    str: "a string",
    bool: "a boolean",
    int: "a whole number",
    float: "a number",
    type(None): "null",
}


def _json_name(value: object) -> str:
    return _NAMES.get(type(value), "something else")
