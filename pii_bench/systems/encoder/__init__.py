"""The fine-tuned encoder: systems for detection and query-related, a detector, a relevance system.

One network finds the spans and types, scores how much the query needs each, and assigns them to
people. `train` needs torch, `reader` only onnxruntime and tokenizers.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from pii_bench.errors import InputFileError
from pii_bench.files import sha256_of_value
from pii_bench.scorer.locate import DetectedSpan, locator_of
from pii_bench.systems import BALANCED, ENCODER
from pii_bench.systems.base import THIS_MACHINE, SystemCard
from pii_bench.systems.encoder.reader import SHIPPED, FoundEntity, Reader, is_kept, subjects_of
from pii_bench.systems.encoder.windows import pictures
from pii_bench.systems.predictions import Prediction
from pii_bench.systems.relevance.base import NEVER
from pii_bench.tasks import Status, Task
from pii_bench.taxonomy import PiiType

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pii_bench.datasets.sample import Sample
    from pii_bench.systems.base import System
    from pii_bench.systems.relevance.base import Candidate

LOG: Final = "training.json"
"""Training log: settings, data, versions, dev scores, and the thresholds of `--keep` (`dial`)."""


def read_threshold(folder: Path, keep: str) -> float:
    """Return the least relevance at which an entity stays readable, by the `--keep` setting.

    Raises:
        InputFileError: the training log is missing or lacks the setting.
    """
    path = folder / LOG
    try:
        return float(json.loads(path.read_bytes())["dial"][keep]["threshold"])
    except OSError as error:
        raise InputFileError(path, error.strerror or "cannot be read") from error
    except (ValueError, KeyError, TypeError) as error:
        raise InputFileError(path, f"has no threshold dial.{keep}") from error


class _Shared:
    """The reader of both systems, which caches the entities of each text."""

    def __init__(self, folder: Path, keep: str) -> None:
        self.name = ENCODER if folder == SHIPPED else f"{ENCODER}:{folder.name}"
        self.reader = Reader(folder)
        self.threshold = read_threshold(folder, keep)
        # Tuples: a list in the cache could change.
        self.detect = lru_cache(4096)(lambda text: tuple(self.reader.detect(text)))

    def card(self, prompt: str, task: Task) -> SystemCard:
        return SystemCard(
            model=self.name,
            prompt=prompt,
            prompt_sha256="",
            task=task,
            oracle=False,
            # The same for both systems, because their results are combined.
            settings={"weights": self.reader.sha256, "threshold": repr(self.threshold)},
            unmasked_text_to=THIS_MACHINE,
        )

    def score_relevance(self, text: str, query: str) -> list[FoundEntity]:
        return self.reader.score_relevance(text, self.detect(text), query)


class EncoderDetector:
    """The encoder as a `Detector`.

    Raises:
        InputFileError: a file of the weights is missing or broken.
    """

    types = frozenset(PiiType)
    name = ENCODER

    def __init__(self, folder: Path) -> None:
        self._reader = Reader(folder)
        self.identity: Mapping[str, str] = {"weights": self._reader.sha256}

    def detect(self, text: str) -> list[DetectedSpan]:
        """Return the spans of a text, sorted and without overlaps."""
        found = self._reader.detect(text)
        spans = (DetectedSpan(*span, item.type) for item in found for span in item.spans)
        return sorted(spans, key=lambda span: span.start)


@dataclass(frozen=True, slots=True)
class EncoderDetectionSystem:
    """The encoder as a `System` for detection."""

    shared: _Shared

    @property
    def card(self) -> SystemCard:
        """The description of the system for detection."""
        return self.shared.card("detection", Task.DETECTION)

    def request_hash(self, sample: Sample) -> str:
        """Return the SHA-256 over the weights, the description and its pictures."""
        text = sample.description
        return sha256_of_value([self.shared.reader.sha256, text, *pictures(text)])

    async def respond(self, sample: Sample) -> Prediction:
        """Return the entities of each person; a text found with two types gets the last."""
        found = await asyncio.to_thread(self.shared.detect, sample.description)
        people = (tuple(dict(own).items()) for own in subjects_of(found))
        return Prediction(Status.OK, subjects=tuple(people) or ((),))

    async def close(self) -> None:
        """Nothing to release."""


@dataclass(frozen=True, slots=True)
class EncoderRelevanceSystem:
    """The encoder as a `System` for query-related: the entities that stay readable."""

    shared: _Shared

    @property
    def card(self) -> SystemCard:
        """The description of the system for query-related."""
        return self.shared.card(ENCODER, Task.QUERY_RELATED)

    def request_hash(self, sample: Sample) -> str:
        """Return the SHA-256 over the weights, the threshold, and both texts and their pictures."""
        identity = [self.shared.reader.sha256, repr(self.shared.threshold)]
        text, query = sample.description, sample.query or ""
        return sha256_of_value([*identity, text, query, *pictures(text), *pictures(query)])

    async def respond(self, sample: Sample) -> Prediction:
        """Return the texts that the query needs."""
        found = await asyncio.to_thread(
            self.shared.score_relevance, sample.description, sample.query or ""
        )
        needed = [item.text for item in found if is_kept(item, self.shared.threshold)]
        return Prediction(Status.OK, related=tuple(dict.fromkeys(needed)))

    async def close(self) -> None:
        """Nothing to release."""


def encoder_systems(folder: Path, keep: str) -> tuple[System, ...]:
    """Return the systems for detection and query-related; `keep` is the `--keep` setting.

    Raises:
        InputFileError: a file of the folder is missing or broken.
    """
    shared = _Shared(folder, keep)
    return EncoderDetectionSystem(shared), EncoderRelevanceSystem(shared)


class EncoderScorer:
    """The shipped encoder as a `Relevance` system for entities of another detector."""

    name = ENCODER

    def __init__(self) -> None:
        self._reader = Reader()
        self.threshold = read_threshold(SHIPPED, BALANCED)
        self.identity: Mapping[str, str] = {
            "weights": self._reader.sha256,
            "threshold": repr(self.threshold),
        }

    def scores(self, query: str, description: str, candidates: Sequence[Candidate]) -> list[float]:
        """Return the relevance of each candidate; `NEVER` for those that are not kept."""
        locator = locator_of(description)
        found = [
            FoundEntity(item.text, PiiType(item.type), tuple(locator.spans(item.text)), ())
            for item in candidates
        ]
        scored = self._reader.score_relevance(description, found, query)
        return [item.relevance if is_kept(item, self.threshold) else NEVER for item in scored]
