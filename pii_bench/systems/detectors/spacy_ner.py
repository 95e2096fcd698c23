"""spaCy's named entities, without anything made for PII."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from pii_bench.scorer.locate import DetectedSpan
from pii_bench.systems.detectors.installed import import_part, version_of
from pii_bench.systems.detectors.known_labels import SPACY
from pii_bench.systems.detectors.spacy_model import INSTALL, SHA256, locate_spacy_model
from pii_bench.systems.detectors.spans import encodable, tidy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pii_bench.systems.detectors.label_map import LabelMap

# What the entity recognizer does not need.
_EXCLUDED: Final = ("tagger", "parser", "attribute_ruler", "lemmatizer", "senter")


class SpacyDetector:
    """en_core_web_md's entities (`Detector`).

    Args:
        labels: instead of its own map.

    Raises:
        MissingExtraError: spaCy or the model is not installed.
        InputFileError: the model is not the pinned one.
        UnknownNameError: the map lacks a label of the model.
    """

    def __init__(self, labels: LabelMap | None = None) -> None:
        self._labels = labels or SPACY
        spacy = import_part("spacy", INSTALL)
        self._nlp = spacy.load(locate_spacy_model(), exclude=_EXCLUDED)
        # The limit is there to save memory, which the entity recognizer hardly takes.
        self._nlp.max_length = sys.maxsize
        self.types = self._labels.check(self._nlp.get_pipe("ner").labels)

    @property
    def name(self) -> str:
        """`spacy`."""
        return "spacy"

    @property
    def identity(self) -> Mapping[str, str]:
        """The version of spaCy, the model's and the map's hash."""
        return {
            "runtime": version_of("spacy"),
            "weights": f"sha256:{SHA256}",
            "labels": f"sha256:{self._labels.sha256}",
        }

    def detect(self, text: str) -> list[DetectedSpan]:
        """The entities whose labels have a type."""
        found = []
        for entity in self._nlp(encodable(text)).ents:
            pii_type = self._labels.type_of(entity.label_)
            if pii_type is not None:
                found.append(DetectedSpan(entity.start_char, entity.end_char, pii_type))
        return tidy(text, found)
