"""Microsoft Presidio as it comes: its recognizers, thresholds and mapping of labels.

Its own configuration drops organisations ("many false positives") and asks for no
least score; neither is tuned here. Only its spaCy model is another size than its default.
"""

from __future__ import annotations

import logging
import os
import sys
from typing import TYPE_CHECKING, Any, Final

from pii_bench.scorer.locate import DetectedSpan
from pii_bench.systems.detectors.base import encodable, import_part, tidy, version_of
from pii_bench.systems.detectors.label_map import PRESIDIO
from pii_bench.systems.detectors.spacy_ner import INSTALL, SHA256, locate_spacy_model

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pii_bench.systems.detectors.label_map import LabelMap

_LANGUAGE: Final = "en"


class PresidioDetector:
    """presidio-analyzer's default engine for English, on en_core_web_md (`Detector`).

    Args:
        labels: instead of its own map.

    Raises:
        MissingExtraError: Presidio, spaCy or the model is not installed.
        InputFileError: the model is not the pinned one.
        UnknownNameError: the map lacks an entity that Presidio supports.
    """

    def __init__(self, labels: LabelMap | None = None) -> None:
        self._labels = labels or PRESIDIO
        self._analyzer = _build_analyzer(locate_spacy_model())
        self.types = self._labels.check(self._analyzer.get_supported_entities(_LANGUAGE))

    @property
    def name(self) -> str:
        """`presidio`."""
        return "presidio"

    @property
    def identity(self) -> Mapping[str, str]:
        """Versions of Presidio and spaCy, the model's and the map's hash."""
        return {
            "engine": version_of("presidio-analyzer"),
            "runtime": version_of("spacy"),
            "weights": f"sha256:{SHA256}",
            "labels": f"sha256:{self._labels.sha256}",
        }

    def detect(self, text: str) -> list[DetectedSpan]:
        """The entities with a type; of two at one place, that of the higher score."""
        results = self._analyzer.analyze(encodable(text), language=_LANGUAGE)
        found = []
        # Presidio keeps its recognizers in a set, so the order of its results is chance.
        for result in sorted(results, key=lambda result: (-result.score, result.entity_type)):
            pii_type = self._labels.type_of(result.entity_type)
            if pii_type is not None:
                found.append(DetectedSpan(result.start, result.end, pii_type))
        return tidy(text, found)


def _build_analyzer(model: Path) -> Any:
    # To judge the end of an address, Presidio would fetch the list of top-level domains
    # from the network: without it, the list in the package serves. On a GPU spaCy's
    # scores differ a little.
    os.environ["TLDEXTRACT_PUBLIC_SUFFIX_LIST_URLS"] = ""
    os.environ["PRESIDIO_DEVICE"] = "cpu"
    # It warns of each recognizer for a language that was not asked for.
    logging.getLogger("presidio-analyzer").setLevel(logging.ERROR)
    presidio = import_part("presidio_analyzer", INSTALL)
    provider = import_part("presidio_analyzer.nlp_engine", INSTALL).NlpEngineProvider()
    provider.nlp_configuration["models"] = [{"lang_code": _LANGUAGE, "model_name": str(model)}]
    engine = provider.create_engine()
    # The limit is there to save memory.
    engine.nlp[_LANGUAGE].max_length = sys.maxsize
    return presidio.AnalyzerEngine(nlp_engine=engine, supported_languages=[_LANGUAGE])
