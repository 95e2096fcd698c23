"""The BiLSTM-CRF as a detector, without torch."""

from __future__ import annotations

import hashlib
from importlib.metadata import version
from typing import TYPE_CHECKING

from pii_bench.files import sha256_of
from pii_bench.systems.graphs import load_graph
from pii_bench.systems.tagger import decode
from pii_bench.systems.tagger.vocabulary import (
    EMISSIONS,
    TRANSITIONS,
    VOCABULARY,
    inputs_of,
    read_decoder,
)
from pii_bench.taxonomy import PiiType

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from pii_bench.scorer.locate import DetectedSpan
    from pii_bench.systems.tagger.vocabulary import Features


class BiLstmCrfDetector:
    """A BiLSTM-CRF, which runs on one thread (`Detector`); its name is that of its folder.

    The folder has the weights that `make train` writes.
    """

    types = frozenset(PiiType)

    def __init__(self, folder: Path) -> None:
        hashes = "".join(sha256_of(folder / name) for name in (EMISSIONS, TRANSITIONS, VOCABULARY))
        self.name = folder.name
        self.identity: Mapping[str, str] = {
            "weights": hashlib.sha256(hashes.encode()).hexdigest(),
            "onnxruntime": version("onnxruntime"),
        }
        self._vocabulary, self._transitions = read_decoder(folder)
        self._session = load_graph(folder / EMISSIONS)

    def detect(self, text: str) -> list[DetectedSpan]:
        """Return the spans of a text, in order and without overlaps."""
        return decode(text, self._vocabulary, self._transitions, self._score)

    def _score(self, features: Features) -> NDArray[np.float32]:
        emissions: NDArray[np.float32] = self._session.run(None, inputs_of(features))[0][0]
        return emissions
