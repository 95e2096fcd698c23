"""Detectors by name, their interface, and what they share: cleaning spans, mapping labels.

A detector finds the PII of a text, but does not assign it to subjects.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from pii_bench.errors import InputFileError, MissingExtraError, PiiBenchError, UnknownNameError
from pii_bench.files import DATA, RecordError, sha256_of_value
from pii_bench.scorer.locate import DetectedSpan
from pii_bench.taxonomy import PiiType, types_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class Detector(Protocol):
    """Finds spans of PII; the same text always gives the same spans."""

    @property
    def name(self) -> str:
        """The name in results."""

    @property
    def identity(self) -> Mapping[str, str]:
        """The settings that results depend on: versions, hashes of weights."""

    @property
    def types(self) -> frozenset[PiiType]:
        """The types that it can find."""

    def detect(self, text: str) -> list[DetectedSpan]:
        """Return the spans of a text, in order and without overlaps."""


def tidy(text: str, spans: Iterable[DetectedSpan]) -> list[DetectedSpan]:
    """Strip white space from spans, drop empty and overlapping ones, and sort them.

    Of overlapping spans the longest is kept, of equally long ones the first, of spans in one
    place the first of `spans`.
    """
    trimmed = [_trim(text, span) for span in spans]
    longest_first = sorted(trimmed, key=lambda span: (span.start - span.end, span.start))
    covered = bytearray(len(text))
    kept: list[DetectedSpan] = []
    for span in longest_first:
        length = span.end - span.start
        if length > 0 and not any(covered[span.start : span.end]):
            covered[span.start : span.end] = b"\1" * length
            kept.append(span)
    return sorted(kept, key=lambda span: span.start)


def _trim(text: str, span: DetectedSpan) -> DetectedSpan:
    piece = text[span.start : span.end]
    start = span.start + len(piece) - len(piece.lstrip())
    return replace(span, start=start, end=start + len(piece.strip()))


def import_part(module: str, install: str) -> Any:
    """Import a module of an extra, which the command `install` installs.

    Raises:
        MissingExtraError: the module or one that it imports is not installed.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise MissingExtraError(error.name or module, install) from None


def version_of(distribution: str) -> str:
    """Return name and version of an installed distribution, such as `spacy 3.8.18`."""
    return f"{distribution} {importlib.metadata.version(distribution)}"


@dataclass(frozen=True, slots=True)
class LabelMap:
    """The types of a detector's labels: None for what is not PII or has none of the seven types.

    `name` is for errors.
    """

    name: str
    types: Mapping[str, PiiType | None]

    def type_of(self, label: str) -> PiiType | None:
        """Return the type of a label; None if it has none.

        Raises:
            UnknownNameError: the map lacks the label.
        """
        if label not in self.types:
            raise UnknownNameError(f"label of {self.name}", label, self.types)
        return self.types[label]

    def check(self, labels: Iterable[str]) -> frozenset[PiiType]:
        """Check that the map has all labels of a detector, and return their types."""
        types = [self.type_of(label) for label in sorted(labels)]
        return frozenset(pii_type for pii_type in types if pii_type is not None)

    def spans(self, text: str, labelled: Iterable[tuple[int, int, str]]) -> list[DetectedSpan]:
        """Convert (start, end, label) to clean spans of our types."""
        typed = [(start, end, self.type_of(label)) for start, end, label in labelled]
        return tidy(text, [DetectedSpan(a, b, kind) for a, b, kind in typed if kind is not None])

    @property
    def sha256(self) -> str:
        """Hash of the labels and types, independent of name and order."""
        return sha256_of_value(dict(self.types))


def read_label_map(path: Path) -> LabelMap:
    """Read a map, which replaces a detector's own, from a JSON object of label to type or null.

    Raises:
        InputFileError: the file cannot be read or is not such an object, a label is repeated, or
            a type is not one of the seven.
    """
    try:
        record = json.loads(path.read_bytes(), object_pairs_hook=_object)
        if not isinstance(record, dict):
            raise RecordError("must be an object of label to type or null")
        return LabelMap(path.name, {label: _type(label, value) for label, value in record.items()})
    except OSError as error:
        raise InputFileError(path, error.strerror or "cannot be read") from error
    except RecordError as error:
        raise InputFileError(path, str(error)) from None
    except (ValueError, RecursionError):
        raise InputFileError(path, "not valid JSON") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    labels = Counter(label for label, _ in pairs)
    for label, times in labels.items():
        if times > 1:
            raise RecordError(f"label {label!r} is repeated")
    return dict(pairs)


def _type(label: str, value: object) -> PiiType | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise RecordError(f"label {label!r}: its type must be a string or null")
    if value not in PiiType.__members__:
        raise RecordError(f"label {label!r}: {UnknownNameError('type', value, PiiType)}")
    return PiiType(value)


PRESIDIO: Final = LabelMap("Presidio", types_of("presidio"))
"""All entities of the recognizers of presidio-analyzer 2.2.366, also of disabled ones."""

SPACY: Final = LabelMap("spaCy", types_of("spacy"))
"""The labels of spaCy's English models, which are those of OntoNotes 5."""

HUGGING_FACE_SETS: Final = ("conll", "spacy", "ai4privacy", "datafog")

HUGGING_FACE: Final = LabelMap(
    "Hugging Face",
    {label: kind for name in HUGGING_FACE_SETS for label, kind in types_of(name).items()},
)
"""The labels of CoNLL-2003, OntoNotes, AI4Privacy and DataFog, which do not contradict."""


DETECTORS: Final = ("bilstm-crf", "bilstm-crf-words", "presidio", "spacy", "hf")


def detector_names() -> list[str]:
    """Return the names as a user writes them: `presidio`, `hf:PATH`."""
    return [f"{name}:PATH" if name == "hf" else name for name in DETECTORS]


def check_detector(name: str) -> None:
    """Raise an `UnknownNameError` for a name that is not in `detector_names`."""
    kind, _, path = name.partition(":")
    if kind not in DETECTORS or bool(path) != (kind == "hf"):
        raise UnknownNameError("detector", name, detector_names())


def build_detector(name: str, label_map: Path | None = None) -> Detector:
    """Build a detector by name; a label map replaces its own (`read_label_map`).

    Raises:
        UnknownNameError: there is no such detector, or the map lacks a label.
        PiiBenchError: a map is given for a detector whose labels are our types.
        InputFileError: the map, the model or the checkpoint is broken.
        MissingExtraError: a package that the detector needs is not installed.
    """
    check_detector(name)
    kind, _, path = name.partition(":")
    if label_map is not None and kind.startswith("bilstm-crf"):
        raise PiiBenchError(f"detector {name!r} already has our types and takes no label map")
    labels = None if label_map is None else read_label_map(label_map)
    match kind:
        case "presidio":
            from pii_bench.systems.detectors.spacy_presidio import PresidioDetector

            return PresidioDetector(labels)
        case "spacy":
            from pii_bench.systems.detectors.spacy_presidio import SpacyDetector

            return SpacyDetector(labels)
        case "hf":
            from pii_bench.systems.detectors.hugging_face import HuggingFaceDetector

            return HuggingFaceDetector(Path(path), labels)
        case _:
            from pii_bench.systems.detectors.bilstm_crf import BiLstmCrfDetector

            return BiLstmCrfDetector(DATA / "models" / kind)
