"""One pretrained encoder, fine-tuned for all three questions that masking asks of a text.

Where is personal information and of which type; which of it does a query need, read together
with the text; whose is it. Here it is as systems, as a detector, and as relevance for entities
that another detector found. `train` needs torch, `reader` only onnxruntime and tokenizers.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from pii_bench.errors import InputFileError
from pii_bench.scorer.locate import DetectedSpan, locator_of
from pii_bench.systems import BALANCED, ENCODER
from pii_bench.systems.base import THIS_MACHINE, SystemCard
from pii_bench.systems.encoder.reader import SHIPPED, FoundEntity, Reader, is_kept, subjects_of
from pii_bench.systems.predictions import Prediction
from pii_bench.tasks import Status, Task
from pii_bench.taxonomy import PiiType

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pii_bench.datasets.sample import Sample
    from pii_bench.systems.base import System
    from pii_bench.systems.relevance.base import Candidate

LOG: Final = "training.json"
"""Settings, data, versions, the dev curve, and the dial that was fitted on dev."""
_REMEMBERED: Final = 4096


def read_threshold(folder: Path, keep: str) -> float:
    """The least relevance of a needed entity.

    Args:
        folder: of the weights.
        keep: setting of the dial.

    Raises:
        InputFileError: the log is missing or lacks the setting.
    """
    path = folder / LOG
    try:
        return float(json.loads(path.read_bytes())["dial"][keep]["threshold"])
    except OSError as error:
        raise InputFileError(path, error.strerror or "cannot be read") from error
    except (ValueError, KeyError, TypeError) as error:
        raise InputFileError(path, f"has no threshold dial.{keep}") from error


class _Shared:
    """One reader for both systems; what it found in a text serves both tasks.

    Attributes:
        name: of the systems: `encoder`, with the name of the folder where the weights are not
            those that ship.
    """

    def __init__(self, folder: Path, keep: str) -> None:
        self.name = ENCODER if folder == SHIPPED else f"{ENCODER}:{folder.name}"
        self.reader = Reader(folder)
        self.threshold = read_threshold(folder, keep)
        self.detect = lru_cache(_REMEMBERED)(self._detect)

    @property
    def settings(self) -> dict[str, str]:
        """Those of both systems: one is read with the answers of the other."""
        return {"weights": self.reader.sha256, "threshold": repr(self.threshold)}

    def _detect(self, text: str) -> tuple[FoundEntity, ...]:
        return tuple(self.reader.detect(text))

    def score_relevance(self, text: str, query: str) -> list[FoundEntity]:
        """What was found, with its relevance."""
        return self.reader.score_relevance(text, self.detect(text), query)


class EncoderDetector:
    """The spans alone (`Detector`).

    Raises:
        InputFileError: a file of the weights is missing or broken.
    """

    types = frozenset(PiiType)
    name = ENCODER

    def __init__(self, folder: Path = SHIPPED) -> None:
        self._reader = Reader(folder)

    @property
    def identity(self) -> Mapping[str, str]:
        """The hash of the weights."""
        return {"weights": self._reader.sha256}

    def detect(self, text: str) -> list[DetectedSpan]:
        """The spans of a text in order, none overlapping another; any text is fine."""
        found = self._reader.detect(text)
        spans = (DetectedSpan(*span, each.type) for each in found for span in each.spans)
        return sorted(spans, key=lambda span: span.start)


@dataclass(frozen=True, slots=True)
class EncoderDetectionSystem:
    """Answers detection: the entities of each person (`System`)."""

    shared: _Shared

    @property
    def card(self) -> SystemCard:
        """It names subjects."""
        return SystemCard(
            model=self.shared.name,
            prompt="detection",
            prompt_sha256="",
            task=Task.DETECTION,
            oracle=False,
            settings=self.shared.settings,
            unmasked_text_to=THIS_MACHINE,
        )

    def request_hash(self, sample: Sample) -> str:
        """SHA-256 over the weights and the description."""
        return _hash([self.shared.reader.sha256, sample.description])

    async def respond(self, sample: Sample) -> Prediction:
        """The texts of each person with their types; a text of two types has the last."""
        found = await asyncio.to_thread(self.shared.detect, sample.description)
        people = (tuple(dict(own).items()) for own in subjects_of(found))
        return Prediction(Status.OK, subjects=tuple(people) or ((),))

    async def close(self) -> None:
        """Nothing to release."""


@dataclass(frozen=True, slots=True)
class EncoderRelevanceSystem:
    """Answers query-related: the entities that the dial keeps (`System`)."""

    shared: _Shared

    @property
    def card(self) -> SystemCard:
        """The name of the system counts as its prompt."""
        return SystemCard(
            model=self.shared.name,
            prompt=ENCODER,
            prompt_sha256="",
            task=Task.QUERY_RELATED,
            oracle=False,
            settings=self.shared.settings,
            unmasked_text_to=THIS_MACHINE,
        )

    def request_hash(self, sample: Sample) -> str:
        """SHA-256 over the weights, the threshold, the description and the query."""
        identity = [self.shared.reader.sha256, repr(self.shared.threshold)]
        return _hash([*identity, sample.description, sample.query or ""])

    async def respond(self, sample: Sample) -> Prediction:
        """The texts that are needed."""
        found = await asyncio.to_thread(
            self.shared.score_relevance, sample.description, sample.query or ""
        )
        needed = [each.text for each in found if is_kept(each, self.shared.threshold)]
        return Prediction(Status.OK, related=tuple(dict.fromkeys(needed)))

    async def close(self) -> None:
        """Nothing to release."""


def encoder_systems(folder: Path, keep: str = BALANCED) -> tuple[System, ...]:
    """Detection and query-related by the weights of a folder.

    Args:
        folder: of the weights.
        keep: how much stays readable, a setting of the dial.

    Raises:
        InputFileError: a file of the folder is missing or broken.
    """
    shared = _Shared(folder, keep)
    return EncoderDetectionSystem(shared), EncoderRelevanceSystem(shared)


class EncoderScorer:
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
        from pii_bench.systems.relevance.base import NEVER

        locator = locator_of(description)
        found = [
            FoundEntity(each.text, PiiType(each.type), tuple(locator.spans(each.text)), ())
            for each in candidates
        ]
        weighed = self._reader.score_relevance(description, found, query)
        return [item.relevance if is_kept(item, self.threshold) else NEVER for item in weighed]


def _hash(identity: object) -> str:
    return hashlib.sha256(json.dumps(identity).encode()).hexdigest()
