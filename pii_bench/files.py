"""Reading texts and JSON, writing files whole or not at all, hashes, and where our files are.

An error names the line and never quotes what is in a file.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import re
import secrets
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, TypeVar

import jsonlines

from pii_bench.errors import BadLinesError, InputFileError, PiiBenchError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from _typeshed import DataclassInstance

T = TypeVar("T")

_PACKAGE: Final = Path(__file__).resolve().parent
_BUNDLED: Final = _PACKAGE / "_resources"
# In the checkout, or inside the installed wheel.
_ROOT: Final = _BUNDLED if _BUNDLED.is_dir() else _PACKAGE.parent
DATA: Final = _ROOT / "data"
PROMPTS: Final = _ROOT / "prompts"

_SUFFIX: Final = ".new"
_TEMPORARY: Final = re.compile(rf"\..+\.[a-z0-9_]{{8}}{re.escape(_SUFFIX)}")
_DEEPEST: Final = 50
"""Levels of our own JSON files, and more than any of them has."""


class ResultsError(PiiBenchError):
    """Results cannot be written."""


class RecordError(ValueError):
    """A record that is not of its format; the reader of the file adds file and line."""


class BadLines:
    """Collects what is wrong with the lines of a file, to tell all of it at once."""

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


def open_binary(path: Path) -> IO[bytes]:
    """Open a file to be read.

    Raises:
        InputFileError: it cannot be opened.
    """
    try:
        return path.open("rb")
    except OSError as error:
        raise InputFileError(path, error.strerror or "cannot be read") from error
    except ValueError as error:
        # A null character, or one that the file system cannot write.
        raise InputFileError(path, "no file has such a name") from error


def read_text(path: Path) -> str:
    """A text as it is: no byte of it may change on the way.

    Raises:
        InputFileError: it cannot be read, or is not UTF-8.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputFileError(path, error.strerror or "cannot be read") from error
    return decode(data, path)


def decode(data: bytes, path: Path | str, line: int | None = None) -> str:
    """Decode a text, or a line of a file.

    Raises:
        InputFileError: it is not UTF-8.
    """
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        place = error.start
    # Outside of the handler: what is chained holds the text.
    raise InputFileError(path, f"not valid UTF-8 (byte {place})", line=line)


def read_records(path: Path, bad: BadLines | None = None) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (1-based line, record) of a file of JSON Lines; blank lines are skipped.

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
    with open_binary(path) as file:
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
    with open_binary(path) as file:
        file.seek(offset)
        try:
            return _record(file.readline())
        except RecordError as error:
            raise InputFileError(path, str(error), line=line) from None


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


def _reason(error: jsonlines.InvalidLineError) -> str:
    match error.__cause__:
        case UnicodeDecodeError(start=start):
            return f"not valid UTF-8 (byte {start} of the line)"
        case json.JSONDecodeError(msg=what, colno=column):
            return f"not valid JSON (column {column}: {what})"
        case _:
            return "not valid JSON (a number is too long)"


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


def _is_deep(value: object) -> bool:
    level: list[Any] = [value]
    for _ in range(_DEEPEST):
        inner = [each.values() if isinstance(each, dict) else each for each in level]
        level = [each for values in inner for each in values if isinstance(each, (dict, list))]
    return bool(level)


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


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn what the system says of a path into an error that names it.

    Raises:
        ResultsError: for any OSError inside.
    """
    try:
        yield
    except OSError as error:
        raise ResultsError(f"{path}: cannot be written: {error.strerror or error}") from error


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Open a new version of a file, which takes its place when the block ends without error.

    A process that is killed inside leaves a temporary file, see `remove_leftovers`. Two processes
    that write the same file have a temporary file each: the last to end wins, whole.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}{_SUFFIX}")
    # Not `tempfile`: its files are the owner's alone, whatever the user's umask allows.
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode=0o666)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def remove_leftovers(folder: Path) -> None:
    """Remove the temporary files of `replacing` from a folder and the folders in it.

    No other process may write there meanwhile.

    Raises:
        ResultsError: one cannot be removed.
    """
    for path in (*folder.glob(".*"), *folder.glob("*/.*")):
        if _TEMPORARY.fullmatch(path.name):
            with writing(path):
                path.unlink(missing_ok=True)


def write_whole(path: Path, text: str, *, compress: bool = False) -> None:
    """Replace a text file in one step, making its folder where needed.

    Compressed by gzip, the same text gives the same bytes.

    Raises:
        ResultsError: it cannot be written.
    """
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as new:
            data = encode(text)
            new.write(gzip.compress(data, mtime=0) if compress else data)


def encode(text: str) -> bytes:
    """A text as files hold it: half a surrogate pair, which UTF-8 cannot, as its JSON escape."""
    return text.encode("utf-8", "backslashreplace")


def write_json(path: Path, value: DataclassInstance) -> None:
    """Replace a file by a dataclass as indented JSON.

    Raises:
        ResultsError: it cannot be written.
    """
    write_whole(path, json.dumps(asdict(value), indent=2, ensure_ascii=False) + "\n")


def sha256_of(path: Path) -> str:
    """Hash of a file's bytes, 64 lower-case hexadecimal digits.

    Raises:
        InputFileError: it cannot be read.
    """
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputFileError(path, error.strerror or "cannot be read") from error
    except ValueError as error:
        # A null character, or one that the file system cannot write.
        raise InputFileError(path, "no file has such a name") from error


def sha256_of_folder(folder: Path) -> str:
    """Hash of a folder's files: of their list as `sha256sum` writes it, by relative path.

    Hidden files and folders do not count.

    Raises:
        InputFileError: a file cannot be read.
    """
    paths = {path.relative_to(folder): path for path in folder.rglob("*") if path.is_file()}
    lines = [
        f"{sha256_of(path)}  {relative.as_posix()}\n"
        for relative, path in sorted(paths.items())
        if not any(part.startswith(".") for part in relative.parts)
    ]
    return hashlib.sha256("".join(lines).encode()).hexdigest()
