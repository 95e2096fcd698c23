"""The card of a dataset of ours: what it is, and the pinned contents of its files.

A card lies next to its data as `<name>.card.json` and is the source of truth: its prose is
written by hand, its pins by `pii_bench.datasets.publish`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pii_bench.datasets.checksums import sha256_of
from pii_bench.datasets.native import read_native
from pii_bench.files import RecordError, get, read_object, write_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Pin:
    """What a file holds; the loader refuses any other.

    Attributes:
        samples: lines.
        subjects: of all samples.
        entities: of all subjects; one that is in several spans counts once.
        sha256: hash of the bytes.
    """

    samples: int
    subjects: int
    entities: int
    sha256: str

    @classmethod
    def of(cls, path: Path) -> Pin:
        """Count and hash a file in our format.

        Raises:
            InputFileError: it cannot be read or is broken.
        """
        samples = read_native(path)
        return cls(
            samples=len(samples),
            subjects=sum(len(sample.subjects) for sample in samples),
            entities=sum(len(sample.entities) for sample in samples),
            sha256=sha256_of(path),
        )


@dataclass(frozen=True, slots=True)
class DatasetCard:
    """One dataset, or several that belong together, at a pinned revision.

    Attributes:
        name: the file is `<name>.card.json`.
        version: of the data, MAJOR.MINOR.PATCH.
        released: day of this version, YYYY-MM-DD.
        licence: SPDX identifier.
        benchmark: whether `all` includes it.
        summary: one sentence.
        construction: how it was made, one paragraph.
        known_limits: what it cannot show, one sentence each.
        pins: dataset name to what its file holds; empty before the first build.
    """

    name: str
    version: str
    released: str
    licence: str
    benchmark: bool
    summary: str
    construction: str
    known_limits: tuple[str, ...]
    pins: Mapping[str, Pin]


def card_path(data: Path, name: str) -> Path:
    """The file of a card."""
    return data / f"{name}.card.json"


def pin(card: DatasetCard, paths: Iterable[Path]) -> DatasetCard:
    """The card with the pins of these files, each named by its stem.

    Raises:
        InputFileError: a file cannot be read or is broken.
    """
    return replace(card, pins={path.stem: Pin.of(path) for path in paths})


def write_card(path: Path, card: DatasetCard) -> None:
    """Write a card, whole or not at all.

    Raises:
        ResultsError: it cannot be written.
    """
    write_json(path, card)


def read_card(path: Path) -> DatasetCard:
    """Read a card.

    Raises:
        InputFileError: it is absent or not of its format.
    """
    return read_object(path, "card of a dataset", _card)


def _card(record: dict[str, Any]) -> DatasetCard:
    limits = get(record, "known_limits", list)
    if not all(isinstance(limit, str) for limit in limits):
        raise RecordError("record: 'known_limits' must be a list of strings")
    pins = get(record, "pins", dict)
    return DatasetCard(
        name=get(record, "name", str),
        version=get(record, "version", str),
        released=get(record, "released", str),
        licence=get(record, "licence", str),
        benchmark=get(record, "benchmark", bool),
        summary=get(record, "summary", str),
        construction=get(record, "construction", str),
        known_limits=tuple(limits),
        pins={name: _pin(get(pins, name, dict, "pins"), f"pins.{name}") for name in pins},
    )


def _pin(record: dict[str, Any], owner: str) -> Pin:
    return Pin(
        samples=get(record, "samples", int, owner),
        subjects=get(record, "subjects", int, owner),
        entities=get(record, "entities", int, owner),
        sha256=get(record, "sha256", str, owner),
    )
