"""Reading text and JSON, atomic writing, hashes, and the paths of the bundled files.

Errors name the file and line and never quote the content.
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
    from io import BufferedReader

    from _typeshed import DataclassInstance

T = TypeVar("T")

_PACKAGE: Final = Path(__file__).resolve().parent
_BUNDLED: Final = _PACKAGE / "_resources"
# Inside the installed wheel, else in the checkout.
_ROOT: Final = _BUNDLED if _BUNDLED.is_dir() else _PACKAGE.parent
DATA: Final = _ROOT / "data"
PROMPTS: Final = _ROOT / "prompts"

_SUFFIX: Final = ".new"
_TEMPORARY: Final = re.compile(rf"\..+\.[a-z0-9_]{{8}}{re.escape(_SUFFIX)}")
_SURROGATE: Final = re.compile(r"[\ud800-\udfff]")
_DEEPEST: Final = 50
"""Maximum nesting of the JSON files that this package writes; none comes close."""


class ResultsError(PiiBenchError):
    """Results cannot be written."""


class RecordError(ValueError):
    """A record in a wrong format; the reader of the file adds file and line."""


class BadLines:
    """Collects the problems of a file's lines, to report them together."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._problems: list[tuple[int, str]] = []

    def add(self, line: int, what: str) -> None:
        """Record a 1-based line number and its problem."""
        self._problems.append((line, what))

    def raise_any(self) -> None:
        """Raise an error for the bad lines, if there are any.

        Raises:
            InputFileError: one bad line; `BadLinesError` for several.
        """
        if len(self._problems) == 1:
            line, what = self._problems[0]
            raise InputFileError(self._path, what, line=line)
        if self._problems:
            raise BadLinesError(self._path, self._problems)


def open_binary(path: Path) -> BufferedReader:
    """Open a file for reading.

    Raises:
        InputFileError: the file cannot be opened.
    """
    try:
        return path.open("rb")
    except OSError as error:
        raise InputFileError(path, error.strerror or "cannot be read") from error
    except ValueError as error:
        # A null character, or one that the file system cannot encode.
        raise InputFileError(path, "not a valid file name") from error


def read_text(path: Path) -> str:
    """Read a UTF-8 file without newline conversion.

    Raises:
        InputFileError: the file cannot be read, or is not UTF-8.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputFileError(path, error.strerror or "cannot be read") from error
    return decode(data, path)


def decode(data: bytes, path: Path | str, line: int | None = None) -> str:
    """Decode a file, or a line of it.

    Raises:
        InputFileError: the bytes are not UTF-8.
    """
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        place = error.start
    # Outside the handler: the chained exception would contain the text.
    raise InputFileError(path, f"not valid UTF-8 (byte {place})", line=line)


def read_records(path: Path, bad: BadLines | None = None) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (1-based line number, record) for each line of a JSON Lines file, without blank ones.

    `bad` collects the lines that are not JSON objects; without it, the first one raises.

    Raises:
        InputFileError: the file cannot be read, or a line is not a JSON object.
    """
    for line, _, _, record in read_places(path, bad):
        yield line, record


def read_places(
    path: Path, bad: BadLines | None = None
) -> Iterator[tuple[int, int, bytes, dict[str, Any]]]:
    """Yield (1-based line number, byte offset, line, record); otherwise like `read_records`."""
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
                yield line, start, raw, record


def read_record(path: Path, line: int, offset: int) -> dict[str, Any]:
    """Read the record of a line at an offset from `read_places`.

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
        # `loads`: with another parser, which jsonlines takes if it is installed, messages differ.
        record = jsonlines.Reader([raw], loads=json.loads).read(allow_none=True)
    except jsonlines.InvalidLineError as error:
        # The chained exceptions would contain the line.
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
    """Read a file that contains one JSON object.

    `what` is the kind of file, for the error message; `build` may raise ValueError.

    Raises:
        InputFileError: the file cannot be read, or is in a wrong format.
    """
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(record, dict):
            raise RecordError("must be a JSON object")
        if _depth(record) > _DEEPEST:
            raise RecordError("nested too deep")
        return build(record)
    except OSError as error:
        reason = error.strerror or "cannot be read"
        raise InputFileError(path, f"no {what}: {reason}") from error
    except RecursionError:
        raise InputFileError(path, f"no {what}: nested too deep") from None
    # RecordError, JSONDecodeError and UnicodeDecodeError are subclasses.
    except ValueError as error:
        raise InputFileError(path, f"no {what}: {error}") from error


def _depth(value: object) -> int:
    if isinstance(value, dict):
        value = list(value.values())
    if not isinstance(value, list):
        return 0
    return 1 + max(map(_depth, value), default=0)


def get(record: dict[str, Any], key: str, kind: type[T], owner: str = "record") -> T:
    """Return a required value of a record.

    Raises:
        RecordError: the key is missing, or its value has another type.
    """
    value = record.get(key)
    # Not isinstance: bool is a subclass of int, but not a number in JSON.
    if type(value) is kind:
        return value
    if key not in record:
        raise RecordError(f"{owner}: {key!r} is missing")
    raise RecordError(f"{owner}: {key!r} must be {_NAMES[kind]}, not {_json_name(value)}")


def get_objects(record: dict[str, Any], key: str, owner: str = "record") -> list[dict[str, Any]]:
    """Return a required list of objects.

    Raises:
        RecordError: the key is missing, not a list, or has a member that is not an object.
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
    """Convert an OSError inside the block into a ResultsError that names the path.

    Raises:
        ResultsError: for any OSError inside the block.
    """
    try:
        yield
    except OSError as error:
        raise ResultsError(f"{path}: cannot be written: {error.strerror or error}") from error


@contextmanager
def replacing(path: Path, mode: int = 0o666) -> Iterator[IO[bytes]]:
    """Open a temporary file that replaces `path` when the block ends without an error.

    The user's umask takes permissions from `mode`.

    A killed process leaves its temporary file behind, see `remove_leftovers`. If two processes
    write the same path, the last one to finish wins, with its complete file.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}{_SUFFIX}")
    # Not `tempfile`: it ignores the user's umask and makes files private to the owner.
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def remove_leftovers(folder: Path) -> None:
    """Remove temporary files of `replacing` from a folder and its direct subfolders.

    No other process may write there at the same time.

    Raises:
        ResultsError: a file cannot be removed.
    """
    for path in (*folder.glob(".*"), *folder.glob("*/.*")):
        if _TEMPORARY.fullmatch(path.name):
            with writing(path):
                path.unlink(missing_ok=True)


def write_whole(path: Path, text: str, *, compress: bool = False) -> None:
    """Write a text file atomically, creating its folder if needed.

    Compression by gzip is deterministic: the same text gives the same bytes.

    Raises:
        ResultsError: the file cannot be written.
    """
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as new:
            data = encode(text)
            new.write(gzip.compress(data, mtime=0) if compress else data)


def encode(text: str) -> bytes:
    """Encode as UTF-8; a lone surrogate, which UTF-8 cannot encode, becomes its JSON escape."""
    return text.encode("utf-8", "backslashreplace")


def encodable(text: str) -> str:
    """Join surrogate pairs, and replace lone halves, which UTF-8 cannot encode, by U+FFFD."""
    if _SURROGATE.search(text) is None:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def encodable_in_place(text: str) -> str:
    """Replace each half of a surrogate pair by U+FFFD, so that offsets stay the same."""
    return _SURROGATE.sub("\ufffd", text)


def is_encodable(value: object) -> bool:
    """Return False if a JSON value has a lone surrogate, which UTF-8 cannot encode."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def write_json(path: Path, value: DataclassInstance) -> None:
    """Write a dataclass as indented JSON, as `write_whole` does.

    Raises:
        ResultsError: the file cannot be written.
    """
    write_whole(path, json.dumps(asdict(value), indent=2, ensure_ascii=False) + "\n")


def sha256_of_value(value: object) -> str:
    """Return the SHA-256 of a JSON value, whatever the order of its keys, in hexadecimal digits."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file as 64 lower-case hexadecimal digits.

    Raises:
        InputFileError: the file cannot be read.
    """
    with open_binary(path) as file:
        try:
            return hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise InputFileError(path, error.strerror or "cannot be read") from error


def sha256_of_folder(folder: Path) -> str:
    """Return the SHA-256 of a folder: of the output of `sha256sum` for its files, by relative path.

    Hidden files and folders are skipped.

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
