"""Blind readings of our sets: what each reader chose, found and scored.

Readings are kept raw in `data/readings/<set>.jsonl`, each with the version of the sample that
was read.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pii_bench.errors import InputFileError
from pii_bench.files import DATA, read_records

if TYPE_CHECKING:
    from pathlib import Path

    from pii_bench.datasets.sample import Sample

READINGS: Final = DATA / "readings"

FINISHED: Final = READINGS / "finished"
"""Readings by a third reader of samples drawn from the finished sets."""


def folder_of(reader: str) -> Path:
    """Where readings by a reader are recorded: "a" and "b" before the last mending, "c" after."""
    return FINISHED if reader == "c" else READINGS


@dataclass(frozen=True, slots=True)
class Reading:
    """What one reader said of one version of a sample.

    Attributes:
        id: of the sample.
        version: of the sample, see `version_of`.
        reader: "a" or "b": the two readers of a version; "c": of the finished set.
        round: 1 for the first version of a sample that was read.
        options: texts of the entities that the reader was shown.
        gold: texts of the related entities of that version, which the reader was not shown.
        needed: texts of the entities that the reader takes to be needed.
        unlisted: what is personal in the text and not among the entities.
        ambiguous: whether reasonable people could choose otherwise.
        text: how natural the description is, 1 to 5; `query` likewise.
        remark: in the reader's words, or empty.
    """

    id: str
    version: str
    reader: str
    round: int
    options: tuple[str, ...]
    gold: tuple[str, ...]
    needed: tuple[str, ...]
    unlisted: tuple[str, ...]
    ambiguous: bool
    text: int
    query: int
    remark: str = ""


def version_of(sample: Sample) -> str:
    """Names text, query, entities and related entities of a sample: twelve hexadecimal digits."""
    seen = [sample.description, sample.query, sorted(options(sample)), sorted(needed_texts(sample))]
    return hashlib.sha256(json.dumps(seen).encode()).hexdigest()[:12]


def options(sample: Sample) -> tuple[str, ...]:
    """The texts of the entities, each once."""
    return tuple(dict.fromkeys(entity.text for entity in sample.entities))


def load_readings(name: str, folder: Path = READINGS) -> list[Reading]:
    """The readings of a set, in the order in which they came.

    Raises:
        InputFileError: the file is broken.
    """
    path = folder / f"{name}.jsonl"
    if not path.exists():
        return []
    return [_from_record(path, line, record) for line, record in read_records(path)]


def _from_record(path: Path, line: int, record: dict[str, Any]) -> Reading:
    try:
        return Reading(
            **{
                **record,
                **{key: tuple(record[key]) for key in ("options", "gold", "needed", "unlisted")},
            }
        )
    except (TypeError, KeyError) as error:
        raise InputFileError(path, f"no reading: {error}", line=line) from error


def needed_texts(sample: Sample) -> frozenset[str]:
    """The texts of the related entities."""
    return frozenset(related.text for related in sample.related)
