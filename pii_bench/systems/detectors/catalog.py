"""The detectors by name."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from pii_bench.errors import PiiBenchError, UnknownNameError
from pii_bench.systems.detectors.base import read_label_map

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pii_bench.systems.detectors.base import Detector, LabelMap


@dataclass(frozen=True, slots=True)
class Entry:
    """How a detector is made.

    Attributes:
        build: makes it of the path after its name's colon (empty where it has none) and
            the user's map of labels (None: its own).
        path: whether its name goes on with a colon and a path.
        mapped: whether its labels are others than our types, so that a map can be given.
    """

    build: Callable[[str, LabelMap | None], Detector]
    path: bool = False
    mapped: bool = True


def _bilstm_crf(_: str, __: LabelMap | None) -> Detector:
    from pii_bench.systems.detectors.bilstm_crf import BiLstmCrfDetector

    return BiLstmCrfDetector()


def _bilstm_crf_words(_: str, __: LabelMap | None) -> Detector:
    from pii_bench.systems.detectors.bilstm_crf import WORDS_ALONE, BiLstmCrfDetector

    return BiLstmCrfDetector(WORDS_ALONE)


def _presidio(_: str, labels: LabelMap | None) -> Detector:
    from pii_bench.systems.detectors.spacy_presidio import PresidioDetector

    return PresidioDetector(labels)


def _spacy(_: str, labels: LabelMap | None) -> Detector:
    from pii_bench.systems.detectors.spacy_presidio import SpacyDetector

    return SpacyDetector(labels)


def _hugging_face(path: str, labels: LabelMap | None) -> Detector:
    from pii_bench.systems.detectors.hugging_face import HuggingFaceDetector

    return HuggingFaceDetector(Path(path), labels)


# A detector is imported when it is made.
DETECTORS: Final[Mapping[str, Entry]] = MappingProxyType(
    {
        "bilstm-crf": Entry(_bilstm_crf, mapped=False),
        "bilstm-crf-words": Entry(_bilstm_crf_words, mapped=False),
        "presidio": Entry(_presidio),
        "spacy": Entry(_spacy),
        "hf": Entry(_hugging_face, path=True),
    }
)


def detector_names() -> list[str]:
    """The names as they are written: `presidio`, `hf:PATH`."""
    return [f"{name}:PATH" if entry.path else name for name, entry in DETECTORS.items()]


def check_detector(name: str) -> None:
    """Refuse a name that is none of `detector_names`.

    Raises:
        UnknownNameError: no such detector.
    """
    kind, _, path = name.partition(":")
    if kind not in DETECTORS or bool(path) != DETECTORS[kind].path:
        raise UnknownNameError("detector", name, detector_names())


def build_detector(name: str, label_map: Path | None = None) -> Detector:
    """Make a detector by name.

    Args:
        name: one of `DETECTORS`, with a colon and a path where it needs one.
        label_map: a file instead of its own map, see `read_label_map`.

    Raises:
        UnknownNameError: no such detector, or a label that the map lacks.
        PiiBenchError: a map for a detector whose labels are our types.
        InputFileError: the map, the model or the checkpoint is broken.
        MissingExtraError: what the detector needs is not installed.
    """
    check_detector(name)
    kind, _, path = name.partition(":")
    entry = DETECTORS[kind]
    if label_map is not None and not entry.mapped:
        raise PiiBenchError(f"detector {name!r} gives our types: it takes no map of labels")
    return entry.build(path, None if label_map is None else read_label_map(label_map))
