"""Validation against the schemas of Every Eval Ever 0.3.0 (MIT, see their LICENSE)."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any, Final

import jsonschema

from tests.builders import read_lines

_FOLDER: Final = Path(__file__).with_name("every_eval_ever")


def valid_run(path: Path) -> dict[str, Any]:
    """Read and validate the JSON file of a run."""
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    _validator("eval.schema.json").validate(document)
    return document


def valid_samples(run: Path) -> list[dict[str, Any]]:
    """Read and validate the samples of a run."""
    return [valid_sample(line) for line in read_lines(run.with_name(f"{run.stem}_samples.jsonl"))]


def valid_sample(line: dict[str, Any]) -> dict[str, Any]:
    """Validate a line of samples."""
    _validator("instance_level_eval.schema.json").validate(line)
    return line


@cache
def _validator(schema: str) -> jsonschema.Draft7Validator:
    return jsonschema.Draft7Validator(json.loads((_FOLDER / schema).read_text()))
