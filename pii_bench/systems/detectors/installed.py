"""Parts that are installed or lie on this machine: found when needed, and identified."""

from __future__ import annotations

import importlib
import importlib.metadata
from typing import Any

from pii_bench.errors import MissingExtraError


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
