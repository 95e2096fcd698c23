"""The file that maps tags to the texts they replace; only its owner can read it."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Final

from pii_bench.errors import InputFileError, PiiBenchError
from pii_bench.files import RecordError, encode, get, replacing, writing

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

FORMAT: Final = "pii-bench-mask-1"
"""The value of `format` in a mapping file."""

_ONLY_THE_OWNER: Final = 0o600


def check_target(path: Path, *, force: bool) -> None:
    """Refuse a path to which a mapping must not be written.

    Raises:
        PiiBenchError: If the folder does not exist, or the path exists and `force` is not set or
            it is not a mapping (but, for example, the text to mask).
    """
    if not path.parent.is_dir():
        raise PiiBenchError(f"{path.parent}: no such folder; a mapping cannot be written there")
    if not os.path.lexists(path):
        return
    if not force:
        raise PiiBenchError(
            f"{path}: already exists, and texts masked with it could not be restored without it; "
            "--force replaces it"
        )
    if path.is_symlink() or not path.is_file() or not _is_mapping(path):
        raise PiiBenchError(f"{path}: not a mapping file; --force replaces only mapping files")


def write_mapping(path: Path, mapping: Mapping[str, tuple[str, ...]], *, force: bool) -> None:
    """Write a mapping atomically, to a file that only its owner may read (mode 0600).

    Raises:
        PiiBenchError: See `check_target`.
        ResultsError: If the file cannot be written.
    """
    check_target(path, force=force)
    record = {"format": FORMAT, "tags": mapping}
    text = json.dumps(record, indent=2, ensure_ascii=False) + "\n"
    with writing(path):
        if not force:
            # Reserve the path, so that a concurrent run fails.
            path.touch(mode=_ONLY_THE_OWNER, exist_ok=False)
        try:
            with replacing(path, mode=_ONLY_THE_OWNER) as file:
                file.write(encode(text))
        except BaseException:
            if not force:
                path.unlink()
            raise


def read_mapping(path: Path) -> dict[str, tuple[str, ...]]:
    """Read a mapping file.

    Raises:
        InputFileError: If the file cannot be read or is not a mapping file. The message quotes
            none of its content.
    """
    # Without `from None`, tracebacks would show the texts.
    try:
        record = json.loads(path.read_bytes())
    except OSError as error:
        raise InputFileError(path, error.strerror or "cannot be read") from None
    except (ValueError, RecursionError):
        raise InputFileError(path, "not a mapping file: not valid JSON") from None
    if not isinstance(record, dict):
        raise InputFileError(path, "not a mapping file: must be a JSON object")
    try:
        tags = get(record, "tags", dict, "mapping")
        version = get(record, "format", str, "mapping")
    except RecordError as error:
        raise InputFileError(path, str(error)) from None
    if version != FORMAT:
        raise InputFileError(path, f"mapping: 'format' must be {FORMAT!r}")
    for number, (tag, texts) in enumerate(tags.items(), start=1):
        if not _is_entry(tag, texts):
            raise InputFileError(path, f"tag {number} must be <NAME> with a list of texts")
    return {tag: tuple(texts) for tag, texts in tags.items()}


def _is_mapping(path: Path) -> bool:
    try:
        read_mapping(path)
    except InputFileError:
        return False
    return True


def _is_entry(tag: str, texts: object) -> bool:
    return (
        len(tag) > 2
        and (tag[0], tag[-1]) == ("<", ">")
        and not {"<", ">"} & set(tag[1:-1])
        and isinstance(texts, list)
        and bool(texts)
        and all(isinstance(text, str) for text in texts)
    )
