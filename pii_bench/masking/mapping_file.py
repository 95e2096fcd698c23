"""The file that leads back from tags to texts; only its owner can read it."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pii_bench.errors import InputFileError, PiiBenchError
from pii_bench.files import RecordError, get, writing

if TYPE_CHECKING:
    from collections.abc import Mapping

FORMAT: Final = "pii-bench-mask-1"
"""What a mapping file says of itself."""

_ONLY_THE_OWNER: Final = 0o600


def check_target(path: Path, *, force: bool) -> None:
    """Refuse a path that a mapping must not be written to.

    Raises:
        PiiBenchError: its folder is not there; or it is there itself, and `force` is not set,
            or it is something else than a mapping, such as the text itself or a terminal.
    """
    if not path.parent.is_dir():
        raise PiiBenchError(f"{path.parent}: no such folder; a mapping cannot be written there")
    if not os.path.lexists(path):
        return
    if not force:
        raise PiiBenchError(
            f"{path}: is there already, and what was masked with it could not be restored "
            "without it; --force replaces it"
        )
    if path.is_symlink() or not path.is_file() or not _is_mapping(path):
        raise PiiBenchError(f"{path}: is no mapping; --force replaces nothing else")


def write_mapping(path: Path, mapping: Mapping[str, tuple[str, ...]], *, force: bool) -> None:
    """Write a mapping that only its owner may read (mode 0600), whole or not at all.

    Raises:
        PiiBenchError: see `check_target`.
        ResultsError: it cannot be written.
    """
    check_target(path, force=force)
    record = {"format": FORMAT, "tags": mapping}
    text = json.dumps(record, indent=2, ensure_ascii=False) + "\n"
    with writing(path):
        if not force:
            # A second masking at the same time is refused now.
            path.touch(mode=_ONLY_THE_OWNER, exist_ok=False)
        try:
            _replace(path, text)
        except BaseException:
            if not force:
                path.unlink()
            raise


def _replace(path: Path, text: str) -> None:
    # Its files are of mode 0600 from the start.
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            # Half a surrogate pair, which UTF-8 cannot hold, turns into its JSON escape.
            file.write(text.encode("utf-8", "backslashreplace"))
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def read_mapping(path: Path) -> dict[str, tuple[str, ...]]:
    """Read what `write_mapping` wrote.

    Raises:
        InputFileError: it cannot be read, or is no such file. Nothing of it is quoted.
    """
    try:
        record = _parse(path)
        tags = get(record, "tags", dict, "mapping")
        if get(record, "format", str, "mapping") != FORMAT:
            raise RecordError(f"mapping: 'format' must be {FORMAT!r}")
        for number, (tag, texts) in enumerate(tags.items(), start=1):
            if not _is_entry(tag, texts):
                raise RecordError(f"tag {number} must be <NAME> with a list of its texts")
    except RecordError as error:
        raise InputFileError(path, str(error)) from None
    return {tag: tuple(texts) for tag, texts in tags.items()}


def _is_mapping(path: Path) -> bool:
    try:
        read_mapping(path)
    except InputFileError:
        return False
    return True


def _parse(path: Path) -> dict[str, Any]:
    try:
        record = json.loads(path.read_bytes())
    except OSError as error:
        reason = error.strerror or "cannot be read"
    except (ValueError, RecursionError):
        # What is chained holds the texts.
        reason = "is no mapping: not valid JSON"
    else:
        if isinstance(record, dict):
            return record
        reason = "is no mapping: must be a JSON object"
    raise RecordError(reason)


def _is_entry(tag: str, texts: object) -> bool:
    return (
        len(tag) > 2
        and (tag[0], tag[-1]) == ("<", ">")
        and not {"<", ">"} & set(tag[1:-1])
        and isinstance(texts, list)
        and bool(texts)
        and all(isinstance(text, str) for text in texts)
    )
