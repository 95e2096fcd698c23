from __future__ import annotations

import importlib.util
import sys
from importlib.machinery import ModuleSpec
from typing import TYPE_CHECKING

import pytest

from pii_bench.errors import InputFileError, MissingExtraError, UnknownNameError
from pii_bench.scorer.locate import DetectedSpan
from pii_bench.systems.detectors.label_map import LabelMap
from pii_bench.systems.detectors.spacy_ner import PACKAGE, SHA256, SpacyDetector, locate_spacy_model
from pii_bench.taxonomy import PiiType
from tests.systems.detectors.texts import ANY_TEXT, pieces

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def detector() -> SpacyDetector:
    for package in ("spacy", PACKAGE):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed: run `make detectors`")
    return SpacyDetector()


class TestWithoutIt:
    def test_spacy_is_not_installed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "spacy", None)

        with pytest.raises(
            MissingExtraError, match=r"^spacy is not installed: run `make detectors`"
        ):
            SpacyDetector()

    def test_the_model_is_not_installed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)

        with pytest.raises(MissingExtraError, match=rf"{PACKAGE}.*make detectors"):
            locate_spacy_model()

    def test_another_model_is_refused(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "_model").mkdir()
        (tmp_path / "_model" / "meta.json").touch()
        spec = ModuleSpec(PACKAGE, loader=None, is_package=True)
        spec.submodule_search_locations = [str(tmp_path)]
        monkeypatch.setattr(importlib.util, "find_spec", lambda _: spec)

        with pytest.raises(InputFileError, match=rf"SHA-256 is \w+, pinned is {SHA256}$"):
            locate_spacy_model()


class TestRealModel:
    def test_it_finds_names_places_and_dates(self, detector: SpacyDetector) -> None:
        text = "Rosalind Achebe moved to Gothenburg in March 2019."

        assert pieces(text, detector.detect(text)) == [
            ("Rosalind Achebe", "PER"),
            ("Gothenburg", "LOC"),
            ("March 2019", "DATETIME"),
        ]

    def test_offsets_are_code_points(self, detector: SpacyDetector) -> None:
        assert detector.detect("😀 Berlin") == [DetectedSpan(2, 8, PiiType.LOC)]

    @pytest.mark.parametrize("text", ANY_TEXT.values(), ids=ANY_TEXT)
    def test_any_text_is_fine(self, detector: SpacyDetector, text: str) -> None:
        spans = detector.detect(text)

        assert all(text[span.start : span.end].strip() for span in spans)

    def test_a_text_beyond_spacys_own_limit(self, detector: SpacyDetector) -> None:
        text = "Berlin. " + " " * 1_000_000

        assert detector.detect(text) == [DetectedSpan(0, 6, PiiType.LOC)]

    def test_identity_says_what_answers_depend_on(self, detector: SpacyDetector) -> None:
        assert detector.name == "spacy"
        assert detector.identity.keys() == {"runtime", "weights", "labels"}
        assert detector.identity["weights"] == f"sha256:{SHA256}"

    def test_a_map_that_lacks_a_label_is_refused(self, detector: SpacyDetector) -> None:
        labels = LabelMap("mine.json", {"PERSON": PiiType.PER})

        with pytest.raises(UnknownNameError, match=r"^unknown label of mine\.json 'CARDINAL'"):
            type(detector)(labels)
