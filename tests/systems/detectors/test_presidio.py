from __future__ import annotations

import importlib.metadata
import importlib.util
import subprocess
import sys

import pytest

from pii_bench.errors import MissingExtraError, UnknownNameError
from pii_bench.scorer.locate import DetectedSpan
from pii_bench.systems.detectors.label_map import PRESIDIO, LabelMap
from pii_bench.systems.detectors.presidio import PresidioDetector
from pii_bench.systems.detectors.spacy_ner import PACKAGE, SHA256
from pii_bench.taxonomy import PiiType
from tests.systems.detectors.texts import ANY_TEXT, pieces


@pytest.fixture(scope="module")
def detector() -> PresidioDetector:
    for package in ("presidio_analyzer", PACKAGE):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed: run `make detectors`")
    return PresidioDetector()


def test_presidio_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pii_bench.systems.detectors.presidio.locate_spacy_model", lambda: None)
    monkeypatch.setitem(sys.modules, "presidio_analyzer", None)

    with pytest.raises(
        MissingExtraError, match=r"^presidio_analyzer is not installed: run `make detectors`$"
    ):
        PresidioDetector()


def test_it_finds_names_codes_places_and_dates(detector: PresidioDetector) -> None:
    text = (
        "Rosalind Achebe moved to Gothenburg on 2019-03-01; write to rosalind@example.com, "
        "card 4111 1111 1111 1111."
    )

    assert pieces(text, detector.detect(text)) == [
        ("Rosalind Achebe", "PER"),
        ("Gothenburg", "LOC"),
        ("2019-03-01", "DATETIME"),
        ("rosalind@example.com", "CODE"),
        ("4111 1111 1111 1111", "CODE"),
    ]


def test_organisations_stay_off_as_in_its_own_configuration(detector: PresidioDetector) -> None:
    text = "She works at Microsoft."

    assert "ORG" not in {pii_type for _, pii_type in pieces(text, detector.detect(text))}


def test_an_ignored_label_hides_nothing(detector: PresidioDetector) -> None:
    # A URL to Presidio, in which it finds the address too.
    text = "https://example.com/?from=rosalind@example.com"

    assert PRESIDIO.type_of("URL") is None
    assert [pii_type for _, pii_type in pieces(text, detector.detect(text))] == ["CODE"]


def test_offsets_are_code_points(detector: PresidioDetector) -> None:
    assert detector.detect("😀 ann@example.com") == [DetectedSpan(2, 17, PiiType.CODE)]


@pytest.mark.parametrize("text", ANY_TEXT.values(), ids=ANY_TEXT)
def test_any_text_is_fine(detector: PresidioDetector, text: str) -> None:
    spans = detector.detect(text)

    assert all(text[span.start : span.end].strip() for span in spans)


def test_identity_says_what_answers_depend_on(detector: PresidioDetector) -> None:
    assert detector.name == "presidio"
    assert detector.identity == {
        "engine": f"presidio-analyzer {importlib.metadata.version('presidio-analyzer')}",
        "runtime": f"spacy {importlib.metadata.version('spacy')}",
        "weights": f"sha256:{SHA256}",
        "labels": f"sha256:{PRESIDIO.sha256}",
    }


@pytest.mark.usefixtures("detector")
def test_a_map_that_lacks_a_label_is_refused() -> None:
    labels = LabelMap("mine.json", {"PERSON": PiiType.PER})

    with pytest.raises(UnknownNameError, match=r"^unknown label of mine\.json 'CREDIT_CARD'"):
        PresidioDetector(labels)


@pytest.mark.usefixtures("detector")
def test_it_asks_nothing_of_the_network() -> None:
    code = """
import socket
def refuse(*_, **__):
    raise SystemExit("the network was asked")
socket.getaddrinfo = socket.socket.connect = refuse
from pii_bench.systems.detectors.presidio import PresidioDetector
print(len(PresidioDetector().detect("Write to ann@example.com.")))
"""
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=100, check=False
    )

    assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr
