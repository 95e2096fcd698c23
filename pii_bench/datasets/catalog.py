"""The datasets by name, and files by path."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from pii_bench.datasets.capid import read_capid
from pii_bench.datasets.native import read_native
from pii_bench.errors import InputFileError, UnknownNameError
from pii_bench.resources import DATA

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pii_bench.datasets.sample import Sample

ALL: Final = "all"


@dataclass(frozen=True, slots=True)
class DatasetCard:
    """A dataset of ours at a pinned revision.

    Attributes:
        name: as the command line and results write it.
        samples: how many it has.
        sha256: hash of its file; the loader refuses any other.
        licence: SPDX identifier.
        summary: one sentence.
    """

    name: str
    samples: int
    sha256: str
    licence: str
    summary: str

    @property
    def path(self) -> Path:
        """Its file."""
        return DATA / f"{self.name}.jsonl"


DATASETS: Final[Mapping[str, DatasetCard]] = MappingProxyType(
    {
        card.name: card
        for card in (
            DatasetCard(
                name="demo",
                samples=12,
                sha256="c66c71042b2ac260d6b376eb3d8f5bed2480fe8cdb9ed696df67abf855478686",
                licence="CC-BY-4.0",
                summary="Twelve samples written by hand: the readable example of the format.",
            ),
        )
    }
)


@dataclass(frozen=True, slots=True)
class Dataset:
    """Samples, and where they came from.

    Attributes:
        name: names the results; for a file it ends in the first digits of its hash.
        source: what finds it again: a name of `DATASETS`, or what the user gave.
        sha256: hash of the file's bytes.
        samples: in the file's order.
        faults: annotations that could not be used, one message each.
    """

    name: str
    source: str
    sha256: str
    samples: tuple[Sample, ...]
    faults: tuple[str, ...] = ()


FOREIGN_FORMATS: Final[
    Mapping[str, Callable[[Path], tuple[tuple[Sample, ...], tuple[str, ...]]]]
] = MappingProxyType({"capid": read_capid})


def load_datasets(source: str) -> tuple[Dataset, ...]:
    """Load what `--dataset` names: `all`, a name, `format:path`, or a path.

    Raises:
        UnknownNameError: neither a name nor a file.
        InputFileError: the file is broken, or one of ours differs from its pinned hash.
    """
    if source == ALL:
        return tuple(load_dataset(name) for name in DATASETS)
    return (load_dataset(source),)


def load_dataset(source: str) -> Dataset:
    """Load one dataset: a name, `format:path`, or a path.

    Raises:
        UnknownNameError: neither a name nor a file.
        InputFileError: the file is broken, or one of ours differs from its pinned hash.
    """
    if source in DATASETS:
        return _load_ours(DATASETS[source])
    prefix, colon, rest = source.partition(":")
    if colon and prefix in FOREIGN_FORMATS:
        path = Path(rest)
        sha256 = _sha256(path)
        samples, faults = FOREIGN_FORMATS[prefix](path)
        return Dataset(_file_name(f"{prefix}-{path.stem}", sha256), source, sha256, samples, faults)
    path = Path(source)
    if not path.exists() and path.suffix != ".jsonl" and path.name == source:
        names = [*DATASETS, *(f"{prefix}:PATH" for prefix in FOREIGN_FORMATS), "PATH.jsonl"]
        raise UnknownNameError("dataset", source, names)
    sha256 = _sha256(path)
    return Dataset(_file_name(path.stem, sha256), source, sha256, read_native(path))


def _load_ours(card: DatasetCard) -> Dataset:
    sha256 = _sha256(card.path)
    if sha256 != card.sha256:
        what = f"sha256 is {sha256}, but dataset {card.name!r} is pinned to {card.sha256}"
        raise InputFileError(card.path, what)
    return Dataset(card.name, card.name, sha256, read_native(card.path))


def _sha256(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputFileError(path, error.strerror or "cannot be read") from error


def _file_name(stem: str, sha256: str) -> str:
    # Two files of one name never share results.
    return f"{re.sub(r'[^A-Za-z0-9._-]+', '-', stem)}-{sha256[:8]}"
