"""The interface of a detector."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pii_bench.scorer.locate import DetectedSpan
    from pii_bench.taxonomy import PiiType


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
