from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_bench.datasets.sample import read_native
from pii_bench.errors import InputFileError
from pii_bench.files import DATA
from pii_bench.scorer.locate import DetectedSpan
from pii_bench.systems.detectors import build_detector
from pii_bench.systems.detectors.bilstm_crf import BiLstmCrfDetector
from pii_bench.taxonomy import PiiType

if TYPE_CHECKING:
    from pathlib import Path

    from pii_bench.systems.detectors import Detector

SHIPPED = DATA / "models" / "bilstm-crf"
TEXT = (
    "Personnel file. Tobias Lindqvist joined Harrow Logistics as a bookkeeper. "
    "His e-mail is tobias77@kitepost.example, and he earns $4,350 a month."
)


@pytest.fixture(scope="module")
def detector() -> Detector:
    return BiLstmCrfDetector(SHIPPED)


def test_clear_cases_of_pii_are_found(detector: Detector) -> None:
    found = {(TEXT[span.start : span.end], span.type) for span in detector.detect(TEXT)}

    assert {
        ("Tobias Lindqvist", PiiType.PER),
        ("tobias77@kitepost.example", PiiType.CODE),
        ("$4,350", PiiType.QUANTITY),
    } <= found


@given(st.text(st.characters() | st.sampled_from("aA1 .,$@東é\u0301\n"), max_size=300))
def test_any_text_gives_ordered_visible_spans(detector: Detector, text: str) -> None:
    spans = detector.detect(text)

    assert all(0 <= span.start < span.end <= len(text) for span in spans)
    assert all(one.end <= other.start for one, other in pairwise(spans))
    assert all(text[span.start : span.end].strip() == text[span.start : span.end] for span in spans)
    assert detector.detect(text) == spans


def test_the_end_of_a_long_text_is_searched(detector: Detector) -> None:
    length = len(TEXT) + 1
    spans = detector.detect(f"{TEXT}\n" * 200)

    assert DetectedSpan(16, 32, PiiType.PER) in spans
    # Where windows meet is no gap: something is found in each of the 200 copies.
    found = Counter(span.start // length for span in spans)
    assert all(found[copy] >= 3 for copy in range(200))


def test_the_identity_depends_on_the_files(detector: Detector, tmp_path: Path) -> None:
    folder = shutil.copytree(SHIPPED, tmp_path / "copy")
    assert BiLstmCrfDetector(folder).identity == detector.identity
    assert detector.name == "bilstm-crf"

    with (folder / "vocabulary.json").open("a") as file:
        file.write("\n")
    assert BiLstmCrfDetector(folder).identity != detector.identity


@pytest.mark.parametrize("content", [None, b"", b"{}", b"PK"])
@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("emissions.onnx", "not an ONNX graph"),
        ("transitions.npz", "holds no transitions of a tagger"),
        ("vocabulary.json", "no vocabulary of a tagger"),
    ],
)
def test_an_error_names_the_missing_or_broken_file(
    tmp_path: Path, name: str, what: str, content: bytes | None
) -> None:
    folder = shutil.copytree(SHIPPED, tmp_path / "copy")
    (folder / name).unlink()
    if content is not None:
        (folder / name).write_bytes(content)

    with pytest.raises(InputFileError, match=name if content is None else f"{name}: {what}"):
        BiLstmCrfDetector(folder)


def test_the_detector_of_words_alone_ignores_the_spelling_of_words() -> None:
    of_words = build_detector("bilstm-crf-words")
    found = of_words.detect(TEXT)

    assert of_words.name == "bilstm-crf-words"
    assert found
    assert of_words.detect(TEXT.lower()) == found


def test_it_runs_without_torch() -> None:
    program = (
        "import sys\n"
        "sys.modules |= dict.fromkeys(['torch', 'onnx', 'safetensors'])\n"
        "from pii_bench.systems.detectors import build_detector\n"
        f"assert build_detector('bilstm-crf').detect({TEXT!r})\n"
    )

    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)  # noqa: S603


def test_onnxruntime_stores_no_usage_data(tmp_path: Path) -> None:
    # Without `CI`, which disables its reports.
    environment = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    code = "from pii_bench.systems.detectors import build_detector; build_detector('bilstm-crf')"

    subprocess.run(  # noqa: S603 -- our own interpreter and code
        [sys.executable, "-c", code], env=environment | {"HOME": str(tmp_path)}, check=True
    )

    assert not [*tmp_path.iterdir()]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["single", "multi", "distract"])
@pytest.mark.parametrize("folder", [SHIPPED, SHIPPED.with_name("bilstm-crf-words")])
def test_spans_of_200_descriptions_equal_those_of_torch(folder: Path, name: str) -> None:
    torch = pytest.importorskip("torch", reason="the extra `train` is not installed")
    from pii_bench.systems.tagger import decode
    from pii_bench.systems.tagger.network import read_network
    from pii_bench.systems.tagger.vocabulary import read_decoder

    torch.set_num_threads(1)
    detector = BiLstmCrfDetector(folder)
    vocabulary, transitions = read_decoder(folder)
    network = read_network(folder)
    samples = read_native(DATA / f"{name}.jsonl")[:200]

    for sample in samples:
        expected = decode(sample.description, vocabulary, transitions, network.score)
        assert detector.detect(sample.description) == expected, sample.id
    assert len(samples) == 200
