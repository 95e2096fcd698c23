from __future__ import annotations

import importlib.metadata
import importlib.util
import subprocess
import sys
from importlib.machinery import ModuleSpec
from typing import TYPE_CHECKING

import pytest

from pii_bench.errors import InputFileError, MissingExtraError, UnknownNameError
from pii_bench.scorer.locate import DetectedSpan
from pii_bench.systems.detectors import PRESIDIO, SPACY, LabelMap, spacy_presidio
from pii_bench.systems.detectors.spacy_presidio import (
    PACKAGE,
    SHA256,
    PresidioDetector,
    SpacyDetector,
    locate_spacy_model,
)
from pii_bench.taxonomy import PiiType
from tests.systems.detectors.texts import ANY_TEXT, pieces

if TYPE_CHECKING:
    from pathlib import Path


def installed(package: str) -> None:
    for each in (package, PACKAGE):
        if importlib.util.find_spec(each) is None:
            pytest.skip(f"{each} is not installed: run `make detectors`")


@pytest.fixture(scope="module")
def spacy() -> SpacyDetector:
    installed("spacy")
    return SpacyDetector()


@pytest.fixture(scope="module")
def presidio() -> PresidioDetector:
    installed("presidio_analyzer")
    return PresidioDetector()


@pytest.fixture(params=["spacy", "presidio"])
def detector(request: pytest.FixtureRequest) -> SpacyDetector | PresidioDetector:
    found: SpacyDetector | PresidioDetector = request.getfixturevalue(request.param)
    return found


@pytest.mark.parametrize(
    ("made", "module"), [(SpacyDetector, "spacy"), (PresidioDetector, "presidio_analyzer")]
)
def test_a_missing_package_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
    made: type[SpacyDetector | PresidioDetector],
    module: str,
) -> None:
    monkeypatch.setattr(spacy_presidio, "locate_spacy_model", lambda: None)
    monkeypatch.setitem(sys.modules, module, None)

    with pytest.raises(
        MissingExtraError, match=rf"^{module} is not installed: run `make detectors`$"
    ):
        made()


def test_a_missing_model_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)

    with pytest.raises(MissingExtraError, match=rf"{PACKAGE}.*make detectors"):
        locate_spacy_model()


def test_another_model_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "_model").mkdir()
    (tmp_path / "_model" / "meta.json").touch()
    spec = ModuleSpec(PACKAGE, loader=None, is_package=True)
    spec.submodule_search_locations = [str(tmp_path)]
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: spec)

    with pytest.raises(InputFileError, match=rf"SHA-256 is \w+, pinned is {SHA256}$"):
        locate_spacy_model()


@pytest.mark.parametrize("text", ANY_TEXT.values(), ids=ANY_TEXT)
def test_any_text_is_accepted(detector: SpacyDetector | PresidioDetector, text: str) -> None:
    spans = detector.detect(text)

    assert all(text[span.start : span.end].strip() for span in spans)


def test_spacy_finds_names_places_and_dates(spacy: SpacyDetector) -> None:
    text = "Rosalind Achebe moved to Gothenburg in March 2019."

    assert pieces(text, spacy.detect(text)) == [
        ("Rosalind Achebe", "PER"),
        ("Gothenburg", "LOC"),
        ("March 2019", "DATETIME"),
    ]


def test_offsets_are_code_points(spacy: SpacyDetector, presidio: PresidioDetector) -> None:
    assert spacy.detect("😀 Berlin") == [DetectedSpan(2, 8, PiiType.LOC)]
    assert presidio.detect("😀 ann@example.com") == [DetectedSpan(2, 17, PiiType.CODE)]


def test_spacy_reads_texts_longer_than_its_limit(spacy: SpacyDetector) -> None:
    assert spacy.detect("Berlin. " + " " * 1_000_000) == [DetectedSpan(0, 6, PiiType.LOC)]


def test_the_identity_depends_on_versions_model_and_map(
    spacy: SpacyDetector, presidio: PresidioDetector
) -> None:
    shared = {
        "runtime": f"spacy {importlib.metadata.version('spacy')}",
        "weights": f"sha256:{SHA256}",
    }
    engine = f"presidio-analyzer {importlib.metadata.version('presidio-analyzer')}"

    assert (spacy.name, presidio.name) == ("spacy", "presidio")
    assert spacy.identity == shared | {"labels": f"sha256:{SPACY.sha256}"}
    assert presidio.identity == shared | {"labels": f"sha256:{PRESIDIO.sha256}", "engine": engine}


def test_a_map_that_lacks_a_label_is_refused(
    detector: SpacyDetector | PresidioDetector,
) -> None:
    labels = LabelMap("mine.json", {"PERSON": PiiType.PER})

    with pytest.raises(
        UnknownNameError, match=r"^unknown label of mine\.json '(CARDINAL|CREDIT_CARD)'"
    ):
        type(detector)(labels)


def test_presidio_finds_names_codes_places_and_dates_but_no_organisations(
    presidio: PresidioDetector,
) -> None:
    text = (
        "Rosalind Achebe moved to Gothenburg on 2019-03-01; write to rosalind@example.com, "
        "card 4111 1111 1111 1111. She works at Microsoft."
    )

    assert pieces(text, presidio.detect(text)) == [
        ("Rosalind Achebe", "PER"),
        ("Gothenburg", "LOC"),
        ("2019-03-01", "DATETIME"),
        ("rosalind@example.com", "CODE"),
        ("4111 1111 1111 1111", "CODE"),
    ]


def test_an_ignored_label_does_not_hide_another(presidio: PresidioDetector) -> None:
    # A URL to Presidio, in which it finds the address too.
    text = "https://example.com/?from=rosalind@example.com"

    assert PRESIDIO.type_of("URL") is None
    assert [pii_type for _, pii_type in pieces(text, presidio.detect(text))] == ["CODE"]


@pytest.mark.usefixtures("presidio")
def test_presidio_does_not_use_the_network() -> None:
    code = """
import socket
def refuse(*_, **__):
    raise SystemExit("the network was asked")
socket.getaddrinfo = socket.socket.connect = refuse
from pii_bench.systems.detectors.spacy_presidio import PresidioDetector
print(len(PresidioDetector().detect("Write to ann@example.com.")))
"""
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=100, check=False
    )

    assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr
