"""Parts that are installed or lie on this machine: found when needed, and identified."""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
from typing import TYPE_CHECKING, Any

from pii_bench.datasets.checksums import sha256_of
from pii_bench.errors import MissingExtraError

if TYPE_CHECKING:
    from pathlib import Path


def import_part(module: str, install: str) -> Any:
    """Import a module of an extra.

    Raises:
        MissingExtraError: it, or something that it imports, is not installed.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise MissingExtraError(error.name or module, install) from None


def version_of(distribution: str) -> str:
    """Name and version of an installed distribution, as in `spacy 3.8.18`."""
    return f"{distribution} {importlib.metadata.version(distribution)}"


def sha256_of_folder(folder: Path) -> str:
    """Hash of a folder's files: of their list as `sha256sum` writes it, by relative path.

    Hidden files and folders do not count.
    """
    paths = {path.relative_to(folder): path for path in folder.rglob("*") if path.is_file()}
    lines = [
        f"{sha256_of(path)}  {relative.as_posix()}\n"
        for relative, path in sorted(paths.items())
        if not any(part.startswith(".") for part in relative.parts)
    ]
    return hashlib.sha256("".join(lines).encode()).hexdigest()
