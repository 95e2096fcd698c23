"""The datasets by name with their cards, and files by path."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from pii_bench.datasets.sample import iterate_native, read_native
from pii_bench.errors import InputFileError, PiiBenchError, UnknownNameError
from pii_bench.files import DATA, RecordError, get, read_object, sha256_of, sha256_of_folder
from pii_bench.taxonomy import taxonomy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pii_bench.datasets.sample import Sample
    from pii_bench.datasets.span_files import Document, Misfits, SpanSource
    from pii_bench.taxonomy import Meaning


@dataclass(frozen=True, slots=True)
class Pin:
    """How many samples, subjects and entities a file holds, and its hash; no other is loaded.

    An entity that is in several spans counts once.
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
    """One dataset, or several that belong together, and the pinned contents of their files.

    A card is next to its data as `<name>.card.json` and is the source of truth: its prose is
    written by hand, its pins by `pii_bench.datasets.publish`.

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
    texts = ("name", "version", "released", "licence", "summary", "construction")
    return DatasetCard(
        **{key: get(record, key, str) for key in texts},
        benchmark=get(record, "benchmark", bool),
        known_limits=tuple(limits),
        pins={name: _pin(get(pins, name, dict, "pins"), f"pins.{name}") for name in pins},
    )


def _pin(record: dict[str, Any], owner: str) -> Pin:
    counts = {key: get(record, key, int, owner) for key in ("samples", "subjects", "entities")}
    return Pin(**counts, sha256=get(record, "sha256", str, owner))


ALL: Final = "all"


@dataclass(frozen=True, slots=True)
class Entry:
    """Where a dataset of ours is; its card says what it is and holds.

    Attributes:
        name: as the command line and results write it.
        card: name of its card.
        remedy: what brings its file, in the imperative.
    """

    name: str
    card: str
    remedy: str = "run `pii-bench data build`"

    @property
    def path(self) -> Path:
        """Its file."""
        return self.path_in(DATA)

    @property
    def card_path(self) -> Path:
        """The file of its card."""
        return card_path(DATA, self.card)

    def path_in(self, data: Path) -> Path:
        """Its file under another folder of data."""
        return data / f"{self.name}.jsonl"


_SETS: Final = ("single", "multi", "hard", "distract", "twins", "frontier")
TRAIN_DEV: Final = (
    *("train-single", "train-multi", "train-twins", "train-other"),
    *("dev-single", "dev-multi"),
)
"""Ours that a model may learn from or be tuned on."""

DATASETS: Final[Mapping[str, Entry]] = MappingProxyType(
    {
        **{name: Entry(name, name) for name in _SETS},
        "demo": Entry("demo", "demo", "restore it from the repository"),
        **{name: Entry(name, "train-dev") for name in TRAIN_DEV},
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
        names_subjects: whether it says whose its entities are. Where it does not, no figure
            that depends on subjects is shown.
    """

    name: str
    source: str
    sha256: str
    samples: tuple[Sample, ...]
    faults: tuple[str, ...] = ()
    names_subjects: bool = True


@dataclass(frozen=True, slots=True)
class DatasetStream:
    """A dataset (see `Dataset`) that is read anew whenever its samples are asked for.

    `read` gives the samples one by one, and may raise InputFileError at their end.
    """

    name: str
    source: str
    sha256: str
    faults: tuple[str, ...]
    read: Callable[[], Iterator[Sample]]
    names_subjects: bool = True


@dataclass(frozen=True, slots=True)
class DocumentStream:
    """A dataset as texts with labelled spans, read anew whenever they are asked for.

    `labels` says what its labels mean; `read` gives the documents one by one and tells what does
    not fit.
    """

    name: str
    sha256: str
    labels: Mapping[str, Meaning]
    read: Callable[[Misfits], Iterator[Document]]


def load_datasets(source: str) -> tuple[Dataset, ...]:
    """Load what `--dataset` names: `all`, a name, `format:path`, or a path.

    `all` is every dataset whose card says that it is of the benchmark, and demo as long as
    none of them has been built.

    Raises:
        UnknownNameError: neither a name nor a file.
        InputFileError: the file is broken, or one of ours is absent or not as pinned.
    """
    if source == ALL:
        cards = {name: read_card(entry.card_path) for name, entry in DATASETS.items()}
        names = [name for name, card in cards.items() if card.benchmark and name in card.pins]
        return tuple(load_dataset(name) for name in names or ["demo"])
    return (load_dataset(source),)


def load_for_training(source: str) -> Dataset:
    """Load a dataset that a model is to learn from: one of `TRAIN_DEV` or another author's.

    Raises:
        PiiBenchError: it is one of ours that is for tests alone.
        UnknownNameError: neither a name nor a file.
        InputFileError: the file is absent or broken.
    """
    if source in DATASETS and source not in TRAIN_DEV:
        allowed = ", ".join(TRAIN_DEV)
        raise PiiBenchError(f"dataset {source!r} is for tests alone (allowed: {allowed})")
    return load_dataset(source)


def open_dataset(source: str) -> DatasetStream:
    """Open what `load_dataset` loads; in our format and of spans no more is held than is in use.

    Raises:
        UnknownNameError: neither a name nor a file.
        InputFileError: the file is absent, or ours or foreign and broken.
    """
    if source in DATASETS:
        ours = DATASETS[source]
        sha256, samples = _pinned(ours), read_native(ours.path)
        return DatasetStream(source, source, sha256, (), lambda: iter(samples))
    # Readers of other people's formats are imported for those alone.
    from pii_bench.datasets.foreign import FOREIGN_FORMATS
    from pii_bench.datasets.span_files import SPAN_FORMATS, Misfits, read_samples, span_source

    if (spans := span_source(source)) is not None:
        misfits = Misfits()
        # Read once to know what does not fit.
        deque(read_samples(spans, misfits), maxlen=0)
        name, sha256 = _named(spans)
        return DatasetStream(
            name, source, sha256, misfits.messages(), lambda: read_samples(spans, Misfits()), False
        )
    prefix, colon, rest = source.partition(":")
    if colon and prefix in FOREIGN_FORMATS:
        path = Path(rest)
        sha256 = sha256_of(path)
        samples, faults = FOREIGN_FORMATS[prefix](path)
        name = _file_name(f"{prefix}-{path.stem}", sha256)
        return DatasetStream(name, source, sha256, faults, lambda: iter(samples))
    path = Path(source)
    if path.suffix != ".jsonl" and path.name == source and not _exists(path):
        prefixes = (*FOREIGN_FORMATS, *SPAN_FORMATS)
        names = [*DATASETS, *(f"{prefix}:PATH" for prefix in prefixes), "PATH.jsonl"]
        raise UnknownNameError("dataset", source, names)
    sha256 = sha256_of(path)
    name = _file_name(path.stem, sha256)
    return DatasetStream(name, source, sha256, (), lambda: iterate_native(path))


def open_documents(source: str) -> DocumentStream:
    """Open any dataset as documents with labelled spans.

    Raises:
        UnknownNameError: neither a name nor a file.
        InputFileError: as `open_dataset`.
    """
    from pii_bench.datasets.span_files import SPAN_FORMATS, Document, read_documents, span_source

    if (spans := span_source(source)) is not None:
        labels = SPAN_FORMATS[spans.format].labels()
        return DocumentStream(*_named(spans), labels, partial(read_documents, spans))
    dataset, ours = open_dataset(source), taxonomy("paper")

    def read(misfits: Misfits) -> Iterator[Document]:
        for fault in dataset.faults:
            misfits.add(0, fault.partition(": ")[2])
        for sample in dataset.read():
            spans = {
                (*span, label if label in ours else entity.type)
                for entity in sample.entities
                for label in [entity.category or ""]
                for span in entity.spans
            }
            yield Document(sample.id, sample.description, tuple(sorted(spans)))

    return DocumentStream(dataset.name, dataset.sha256, ours, read)


def load_dataset(source: str) -> Dataset:
    """Load one dataset: a name, `format:path`, or a path.

    Raises:
        UnknownNameError: neither a name nor a file.
        InputFileError: the file is broken, or one of ours is absent or not as pinned.
    """
    if source not in DATASETS:
        from pii_bench.datasets.span_files import Misfits, read_samples, span_source

        if (spans := span_source(source)) is not None:
            # Without `open_dataset`, which would read it twice.
            misfits = Misfits()
            found = tuple(read_samples(spans, misfits))
            name, sha256 = _named(spans)
            return Dataset(name, source, sha256, found, misfits.messages(), names_subjects=False)
    opened = open_dataset(source)
    return Dataset(opened.name, source, opened.sha256, tuple(opened.read()), opened.faults)


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:
        # No file has a name that long.
        return False


def _pinned(entry: Entry) -> str:
    """The hash of one of our files, which is that of its card."""
    if not entry.path.exists():
        raise InputFileError(entry.path, f"it is not there: {entry.remedy}")
    pinned = read_card(entry.card_path).pins.get(entry.name)
    if pinned is None:
        raise InputFileError(entry.card_path, f"does not pin {entry.name!r}: {entry.remedy}")
    sha256 = sha256_of(entry.path)
    if sha256 != pinned.sha256:
        what = (
            f"sha256 is {sha256} ({_lines(entry.path)} samples), but dataset {entry.name!r} is "
            f"pinned to {pinned.sha256} ({pinned.samples} samples): {entry.remedy}"
        )
        raise InputFileError(entry.path, what)
    return sha256


def _lines(path: Path) -> int:
    # Not read as samples: a file that differs may be broken too.
    with path.open("rb") as file:
        return sum(bool(line.strip()) for line in file)


def _named(spans: SpanSource) -> tuple[str, str]:
    path = spans.path
    sha256 = sha256_of_folder(path) if path.is_dir() else sha256_of(path)
    return _file_name(spans.name, sha256), sha256


def _file_name(stem: str, sha256: str) -> str:
    # Two files of one name never share results.
    return f"{re.sub(r'[^A-Za-z0-9._-]+', '-', stem)}-{sha256[:8]}"
