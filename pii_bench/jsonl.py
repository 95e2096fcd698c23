"""Reading JSON with errors that name the file and the line, never its text."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypeVar

import jsonlines

from pii_bench.errors import InputFileError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

T = TypeVar("T")


class RecordError(ValueError):
    """A record that is not of its format; the reader of the file adds file and line."""


def read_records(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (1-based line, record) of a file; blank lines are skipped.

    Raises:
        InputFileError: the file cannot be read, or a line is no JSON object.
    """
    try:
        file = path.open("rb")
    except OSError as error:
        raise InputFileError(path, error.strerror or "cannot be read") from error
    with file:
        for line, raw in enumerate(file, start=1):
            if raw.strip():
                yield line, _record(raw, path, line)


def _record(raw: bytes, path: Path, line: int) -> dict[str, Any]:
    try:
        record = jsonlines.Reader([raw]).read(allow_none=True)
    except jsonlines.InvalidLineError as error:
        # The chained exceptions hold the line itself.
        raise InputFileError(path, _reason(error), line=line) from None
    except RecursionError:
        raise InputFileError(path, "not valid JSON (nested too deep)", line=line) from None
    if not isinstance(record, dict):
        what = f"a line must be a JSON object, not {_json_name(record)}"
        raise InputFileError(path, what, line=line)
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
        return build(record)
    except OSError as error:
        reason = error.strerror or "cannot be read"
        raise InputFileError(path, f"no {what}: {reason}") from error
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
