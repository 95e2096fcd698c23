"""Hashes of files and folders."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from pii_bench.errors import InputFileError

if TYPE_CHECKING:
    from pathlib import Path


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
