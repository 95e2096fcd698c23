"""Recorded answers of readers who annotated samples without seeing the gold labels.

They are stored in `data/readings/<set>.jsonl`, with the version of the sample that was read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pii_bench.errors import InputFileError
from pii_bench.files import DATA, read_records, sha256_of_value

if TYPE_CHECKING:
    from pathlib import Path

    from pii_bench.datasets.sample import Sample

READINGS: Final = DATA / "readings"

FINISHED: Final = READINGS / "finished"
"""Readings of samples from the finished sets, by a third reader."""


def folder_of(reader: str) -> Path:
    """Return the folder of a reader's readings: "a" and "b" read drafts, "c" the finished sets."""
    return FINISHED if reader == "c" else READINGS


@dataclass(frozen=True, slots=True)
class Reading:
    """The answer of one reader about one version of a sample.

    Attributes:
        id: that of the sample.
        version: see `version_of`.
        reader: "a" or "b" for the two readers of a version, "c" for the finished set.
        round: 1 for the first version of a sample that was read.
        options: texts of the entities that the reader was shown.
        gold: texts of the related entities, which the reader was not shown.
        needed: texts of the entities that the reader considers needed.
        unlisted: personal information that is not among the entities.
        ambiguous: whether reasonable people could choose differently.
        text: how natural the description is, 1 to 5.
        query: how natural the query is, 1 to 5.
        remark: comment of the reader, or empty.
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
    """Return a hash of text, query, entities and related entities: twelve hexadecimal digits."""
    texts = sorted(options(sample)), sorted(needed_texts(sample))
    return sha256_of_value([sample.description, sample.query, *texts])[:12]


def options(sample: Sample) -> tuple[str, ...]:
    """Return the distinct texts of the entities."""
    return tuple(dict.fromkeys(entity.text for entity in sample.entities))


def load_readings(name: str, folder: Path = READINGS) -> list[Reading]:
    """Load the readings of a set; none if there is no file.

    Raises:
        InputFileError: the file is broken.
    """
    path = folder / f"{name}.jsonl"
    if not path.exists():
        return []
    return [_from_record(path, line, record) for line, record in read_records(path)]


def _from_record(path: Path, line: int, record: dict[str, Any]) -> Reading:
    lists = ("options", "gold", "needed", "unlisted")
    try:
        return Reading(**{**record, **{key: tuple(record[key]) for key in lists}})
    except (TypeError, KeyError) as error:
        raise InputFileError(path, f"not a reading: {error}", line=line) from error


def needed_texts(sample: Sample) -> frozenset[str]:
    """Return the texts of the related entities."""
    return frozenset(related.text for related in sample.related)
