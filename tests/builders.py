"""Builders of samples and files for tests."""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING, Any

from pii_bench.datasets.sample import sample_from_record, sample_to_record

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pii_bench.datasets.sample import Sample


def sample_record(sample_id: str = "s1", **changes: Any) -> dict[str, Any]:
    """Return a dataset record in which Ann Lee, 32, asks about her age."""
    return {
        "id": sample_id,
        "description": "Ann Lee is 32.",
        "query": "Am I old?",
        "subjects": [
            {
                "id": "A",
                "entities": [
                    {"text": "Ann Lee", "type": "PER", "category": "Full Name", "spans": [[0, 7]]},
                    {"text": "32", "type": "DEM", "category": "Age", "spans": [[11, 13]]},
                ],
            }
        ],
        "related": [{"subject": "A", "text": "32"}],
        "meta": {},
    } | changes


def make_sample(sample_id: str = "s1", **changes: Any) -> Sample:
    return sample_from_record(sample_record(sample_id, **changes))


def unlisted(sample: Sample) -> Sample:
    """Read a sample again from a file without spans, as the format allows."""
    record = sample_to_record(sample)
    for subject in record["subjects"]:
        for entity in subject["entities"]:
            entity.pop("spans", None)
    return sample_from_record(record)


def write_lines(path: Path, records: Iterable[object]) -> Path:
    """Write records as JSON Lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def read_folder(folder: Path) -> dict[str, bytes]:
    """Return the contents of a folder's files by relative path, without hidden files."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.startswith(".")
    }


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def read_csv(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
