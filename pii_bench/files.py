"""Reading a text as it is, and writing files whole or not at all."""

from __future__ import annotations

import gzip
import json
import os
import re
import secrets
from contextlib import contextmanager
from dataclasses import asdict
from typing import IO, TYPE_CHECKING, Final

from pii_bench.errors import InputFileError, PiiBenchError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from _typeshed import DataclassInstance


_SUFFIX: Final = ".new"
_TEMPORARY: Final = re.compile(rf"\..+\.[a-z0-9_]{{8}}{re.escape(_SUFFIX)}")


class ResultsError(PiiBenchError):
    """Results cannot be written."""


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

    A process that is killed inside leaves a temporary file, see `remove_leftovers`. Who
    writes the same file at the same time has another: the last to end wins, whole.
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

    Args:
        path: of the file.
        text: its content.
        compress: write it as gzip does; the same text gives the same bytes.

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
