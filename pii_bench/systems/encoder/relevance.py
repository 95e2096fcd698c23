"""The encoder's relevance for entities that another detector found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pii_bench.scorer.locate import locator_of
from pii_bench.systems import BALANCED, ENCODER
from pii_bench.systems.encoder.files import read_threshold
from pii_bench.systems.encoder.reader import SHIPPED, Found, Reader, is_kept
from pii_bench.systems.relevance.base import NEVER
from pii_bench.taxonomy import PiiType

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pii_bench.systems.relevance.base import Candidate


class EncoderScores:
    """Scores candidates by the encoder's relevance of their places (`Relevance`).

    Args:
        folder: of the weights.

    Raises:
        InputFileError: a file of the folder is missing or broken.
    """

    name = ENCODER

    def __init__(self, folder: Path = SHIPPED) -> None:
        self._reader = Reader(folder)
        self.threshold = read_threshold(folder, BALANCED)

    @property
    def identity(self) -> Mapping[str, str]:
        """Hash of the weights, and the threshold."""
        return {"weights": self._reader.sha256, "threshold": repr(self.threshold)}

    def scores(self, query: str, description: str, candidates: Sequence[Candidate]) -> list[float]:
        """The relevance of each candidate; `NEVER` for what the dial never keeps."""
        locator = locator_of(description)
        found = [
            Found(each.text, PiiType(each.type), tuple(locator.spans(each.text)), ())
            for each in candidates
        ]
        weighed = self._reader.weigh(description, found, query)
        return [item.relevance if is_kept(item, self.threshold) else NEVER for item in weighed]
