"""What detectors find, made into spans that can be compared with gold."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pii_bench.scorer.locate import DetectedSpan

_SURROGATE: Final = re.compile(r"[\ud800-\udfff]")


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
