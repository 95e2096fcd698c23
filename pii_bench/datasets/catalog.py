"""Datasets by name, with their cards, and dataset files by path."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pii_bench.datasets.sample import iterate_native, read_native
from pii_bench.errors import BadLinesError, InputFileError, PiiBenchError, UnknownNameError
from pii_bench.files import DATA, RecordError, get, read_object, sha256_of, sha256_of_folder
from pii_bench.taxonomy import taxonomy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pii_bench.datasets.sample import Sample
    from pii_bench.datasets.span_files import Document, LabelledSpan, Misfits, SpanSource
    from pii_bench.taxonomy import Meaning


@dataclass(frozen=True, slots=True)
class Pin:
    """The counts and hash of a dataset file; a file with another hash is not loaded.

    An entity with several spans counts once.
    """

    samples: int
    subjects: int
    entities: int
    sha256: str

    @classmethod
    def of(cls, path: Path) -> Pin:
        """Count and hash a file in our format.

        Raises:
            InputFileError: the file cannot be read or is broken.
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
    """Description of a dataset, or of several that belong together, with their pins.

    A card is stored next to its data as `<name>.card.json`. Its prose is written by hand, its
    pins by `pii_bench.datasets.publish`.

    Attributes:
        version: of the data, MAJOR.MINOR.PATCH.
        released: date of this version, YYYY-MM-DD.
        licence: SPDX identifier.
        benchmark: whether `all` includes the datasets.
        pins: by name of the dataset; empty before the first build.
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


def read_card(path: Path) -> DatasetCard:
    """Read a card.

    Raises:
        InputFileError: the file is missing or not a card.
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
    """A dataset of this project: its name, that of its card, and how to get a missing file."""

    name: str
    card: str
    remedy: str = "run `pii-bench data build`"

    @property
    def path(self) -> Path:
        """The dataset file."""
        return self.path_in(DATA)

    @property
    def card_path(self) -> Path:
        """The file of the card."""
        return DATA / f"{self.card}.card.json"

    def path_in(self, data: Path) -> Path:
        """Return the path of the file in another data folder."""
        return data / f"{self.name}.jsonl"


OUR_SETS: Final = ("single", "multi", "hard", "distract", "twins", "frontier")
"""Test sets."""
TRAIN: Final = (
    *("train-single", "train-multi", "train-more-single", "train-more-multi"),
    *("train-twins", "train-other"),
)
"""Datasets to train models on."""
TRAIN_DEV: Final = (*TRAIN, "dev-single", "dev-multi", "dev-twins")
"""Datasets to train and tune models on."""

DATASETS: Final[Mapping[str, Entry]] = {
    **{name: Entry(name, name) for name in OUR_SETS},
    "demo": Entry("demo", "demo", "restore it from the repository"),
    **{name: Entry(name, "train-dev") for name in TRAIN_DEV},
}


@dataclass(frozen=True, slots=True)
class Dataset:
    """A loaded dataset.

    Attributes:
        name: name in results; for a file it ends in the first digits of its hash.
        source: a name of `DATASETS`, or what the user passed.
        faults: one message for each kind of unusable annotation.
        names_subjects: whether entities are assigned to subjects. If not, no metric that depends
            on subjects is shown.
    """

    name: str
    source: str
    sha256: str
    samples: tuple[Sample, ...]
    faults: tuple[str, ...] = ()
    names_subjects: bool = True


@dataclass(frozen=True, slots=True)
class DatasetStream:
    """A dataset (see `Dataset`) whose samples are read again on each call of `read`.

    `read` may raise InputFileError after the last sample.
    """

    name: str
    source: str
    sha256: str
    faults: tuple[str, ...]
    read: Callable[[], Iterator[Sample]]
    names_subjects: bool = True


@dataclass(frozen=True, slots=True)
class DocumentStream:
    """A dataset as texts with labelled spans; `labels` gives the meaning of each label.

    `read` yields the documents and adds what does not fit to a `Misfits`.
    """

    name: str
    sha256: str
    labels: Mapping[str, Meaning]
    read: Callable[[Misfits], Iterator[Document]]


def load_datasets(source: str) -> tuple[Dataset, ...]:
    """Load the datasets of a `--dataset` option: `all`, or what `load_dataset` loads.

    `all` is every dataset whose card belongs to the benchmark, or demo if none is built.

    Raises:
        UnknownNameError: the source is neither a name nor a file.
        InputFileError: the file is broken, or one of ours is missing or differs from its pin.
    """
    if source == ALL:
        cards = {name: read_card(entry.card_path) for name, entry in DATASETS.items()}
        names = [name for name, card in cards.items() if card.benchmark and name in card.pins]
        return tuple(load_dataset(name) for name in names or ["demo"])
    return (load_dataset(source),)


def load_for_training(source: str) -> Dataset:
    """Load a dataset to train a model on: one of `TRAIN_DEV` or a file.

    Raises:
        PiiBenchError: the source is a test set of ours.
        UnknownNameError: the source is neither a name nor a file.
        InputFileError: the file is missing or broken.
    """
    if source in DATASETS and source not in TRAIN_DEV:
        allowed = ", ".join(TRAIN_DEV)
        raise PiiBenchError(f"dataset {source!r} is only for tests (allowed: {allowed})")
    return load_dataset(source)


def open_dataset(source: str) -> DatasetStream:
    """Open a dataset that `load_dataset` can load.

    Datasets of spans and files in our format are streamed; others are held in memory.

    Raises:
        UnknownNameError: the source is neither a name nor a file.
        InputFileError: the file is missing or broken. Faults of a streamed file in our format are
            raised when it is read.
    """
    if source in DATASETS:
        entry = DATASETS[source]
        sha256, samples = _check_pin(entry), read_native(entry.path)
        return DatasetStream(source, source, sha256, (), lambda: iter(samples))
    # Imported here because few commands need other formats.
    from pii_bench.datasets.foreign import FOREIGN_FORMATS
    from pii_bench.datasets.span_files import SPAN_FORMATS, Misfits, read_samples, span_source

    if (spans := span_source(source)) is not None:
        misfits = Misfits()
        # A first pass to count the misfits.
        for _ in read_samples(spans, misfits):
            pass
        name, sha256 = _name_and_hash(spans)
        return DatasetStream(
            name,
            source,
            sha256,
            misfits.messages(),
            lambda: read_samples(spans, Misfits()),
            names_subjects=False,
        )
    prefix, colon, rest = source.partition(":")
    if colon and prefix in FOREIGN_FORMATS:
        path = Path(rest)
        sha256 = sha256_of(path)
        samples, faults = FOREIGN_FORMATS[prefix](path)
        name = _file_name(f"{prefix}-{path.stem}", sha256)
        # All entities count as those of one person, so Strict-F1 is defined.
        return DatasetStream(name, source, sha256, faults, lambda: iter(samples))
    path, prefixes = Path(source), (*FOREIGN_FORMATS, *SPAN_FORMATS)
    # `path.exists` would raise if the name is too long for a file.
    exists = os.path.exists(path)  # noqa: PTH110
    if path.suffix != ".jsonl" and path.name == source and not exists:
        names = [*DATASETS, *(f"{prefix}:PATH" for prefix in prefixes), "PATH.jsonl"]
        raise UnknownNameError("dataset", source, names)
    sha256 = sha256_of(path)
    name = _file_name(path.stem, sha256)
    return DatasetStream(name, source, sha256, (), lambda: _iterate_file(path, prefixes))


def _iterate_file(path: Path, formats: Sequence[str]) -> Iterator[Sample]:
    """Yield the samples of a file in our format; if no line can be read, name the others."""
    readable = False
    try:
        for sample in iterate_native(path):
            readable = True
            yield sample
    except InputFileError as error:
        # Without a line the file itself cannot be read, or is empty.
        is_of_lines = isinstance(error, BadLinesError) or error.line is not None
        if readable or not is_of_lines:
            raise
        hint = f"if the file is in another format, give FORMAT:PATH ({', '.join(formats)})"
        raise InputFileError(path, f"{error.what}\n  {hint}", line=error.line) from error


def open_documents(source: str) -> DocumentStream:
    """Open any dataset as documents with labelled spans.

    Raises:
        UnknownNameError: the source is neither a name nor a file.
        InputFileError: see `open_dataset`.
    """
    from pii_bench.datasets.span_files import Document, read_documents, span_source

    if (spans := span_source(source)) is not None:
        name, sha256 = _name_and_hash(spans)
        return DocumentStream(
            name, sha256, spans.labels, lambda misfits: read_documents(spans, misfits)
        )
    dataset, labels = open_dataset(source), taxonomy("paper")

    def read(misfits: Misfits) -> Iterator[Document]:
        for fault in dataset.faults:
            misfits.add(0, fault.partition(": ")[2])
        for sample in dataset.read():
            spans: set[LabelledSpan] = set()
            for entity in sample.entities:
                category = entity.category or ""
                label = category if category in labels else entity.type
                spans.update((start, end, label) for start, end in entity.spans)
            yield Document(sample.id, sample.description, tuple(sorted(spans)))

    return DocumentStream(dataset.name, dataset.sha256, labels, read)


def load_dataset(source: str | Path) -> Dataset:
    """Load one dataset: a name, `format:path`, or a path.

    Raises:
        UnknownNameError: the source is neither a name nor a file.
        InputFileError: the file is broken, or one of ours is missing or differs from its pin.
    """
    opened = open_dataset(str(source))
    samples = tuple(opened.read())
    return Dataset(
        opened.name, opened.source, opened.sha256, samples, opened.faults, opened.names_subjects
    )


def _check_pin(entry: Entry) -> str:
    """Return the hash of a file of ours, which must be that of its pin."""
    if not entry.path.exists():
        raise InputFileError(entry.path, f"the file is missing: {entry.remedy}")
    pin = read_card(entry.card_path).pins.get(entry.name)
    if pin is None:
        raise InputFileError(entry.card_path, f"has no pin of {entry.name!r}: {entry.remedy}")
    sha256 = sha256_of(entry.path)
    if sha256 != pin.sha256:
        # The file may be broken, so its lines are counted without parsing them.
        with entry.path.open("rb") as file:
            lines = sum(bool(line.strip()) for line in file)
        what = (
            f"sha256 is {sha256} ({lines} samples), but dataset {entry.name!r} is "
            f"pinned to {pin.sha256} ({pin.samples} samples): {entry.remedy}"
        )
        raise InputFileError(entry.path, what)
    return sha256


def _name_and_hash(spans: SpanSource) -> tuple[str, str]:
    path = spans.path
    sha256 = sha256_of_folder(path) if path.is_dir() else sha256_of(path)
    return _file_name(spans.name, sha256), sha256


def _file_name(stem: str, sha256: str) -> str:
    # The hash tells files with one name apart.
    return f"{re.sub(r'[^A-Za-z0-9._-]+', '-', stem)}-{sha256[:8]}"
