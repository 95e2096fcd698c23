"""The interface of a detector, and what detectors share: tidy spans, parts to be installed."""

from __future__ import annotations

import importlib
import importlib.metadata
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Protocol

from pii_bench.errors import MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pii_bench.scorer.locate import DetectedSpan
    from pii_bench.taxonomy import PiiType

_SURROGATE: Final = re.compile(r"[\ud800-\udfff]")


class Detector(Protocol):
    """Finds spans of PII; the same text always gives the same spans."""

    @property
    def name(self) -> str:
        """How results name it."""
        ...

    @property
    def identity(self) -> Mapping[str, str]:
        """What tells it from any other of its name: versions, hashes of weights."""
        ...

    @property
    def types(self) -> frozenset[PiiType]:
        """The types that its labels have; of others it finds nothing."""
        ...

    def detect(self, text: str) -> list[DetectedSpan]:
        """The spans of a text in order, none overlapping another; any text is fine."""
        ...


def encodable(text: str) -> str:
    """The text with U+FFFD for each lone surrogate, which libraries in C refuse.

    Offsets stay: one code point stands for one.
    """
    return _SURROGATE.sub("�", text)


def tidy(text: str, found: Iterable[DetectedSpan]) -> list[DetectedSpan]:
    """White space at the ends removed, empty spans and overlaps dropped, in order.

    Of two spans that overlap, the longer stays; of two of one length the earlier; of two
    at one place the one that comes first in `found`.
    """
    trimmed = [span for span in (_trim(text, each) for each in found) if span.start < span.end]
    taken = bytearray(len(text))
    kept: list[DetectedSpan] = []
    for span in sorted(trimmed, key=lambda span: (span.start - span.end, span.start)):
        if not any(taken[span.start : span.end]):
            taken[span.start : span.end] = bytes([1]) * (span.end - span.start)
            kept.append(span)
    return sorted(kept, key=lambda span: span.start)


def _trim(text: str, span: DetectedSpan) -> DetectedSpan:
    piece = text[span.start : span.end]
    start = span.start + len(piece) - len(piece.lstrip())
    return replace(span, start=start, end=start + len(piece.strip()))


def import_part(module: str, install: str) -> Any:
    """Import a module of an extra.

    Raises:
        MissingExtraError: it, or something that it imports, is not installed.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise MissingExtraError(error.name or module, install) from None


def version_of(distribution: str) -> str:
    """Name and version of an installed distribution, as in `spacy 3.8.18`."""
    return f"{distribution} {importlib.metadata.version(distribution)}"
