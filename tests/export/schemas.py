"""The schemas of Every Eval Ever 0.3.0, as their authors released them (MIT, see LICENSE there)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import jsonschema

from tests.builders import read_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

_FOLDER: Final = Path(__file__).with_name("every_eval_ever")


def valid_run(path: Path) -> dict[str, Any]:
    """Read the JSON file of a run; it must be of its schema."""
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    _validate([document], "eval.schema.json")
    return document


def valid_samples(run: Path) -> list[dict[str, Any]]:
    """Read the samples beside the JSON file of a run; every line must be of its schema."""
    lines = read_lines(run.with_name(f"{run.stem}_samples.jsonl"))
    _validate(lines, "instance_level_eval.schema.json")
    return lines


def _validate(documents: Sequence[object], schema: str) -> None:
    validator = jsonschema.Draft7Validator(json.loads((_FOLDER / schema).read_text()))
    for document in documents:
        validator.validate(document)
