from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pii_bench.datasets.native import sample_from_record
from pii_bench.systems.detectors.bilstm_crf import BiLstmCrfDetector
from pii_bench.systems.tagger.checkpoint import read_network
from pii_bench.systems.tagger.decode import decode
from pii_bench.systems.tagger.files import read_decoder
from tests.systems.tagger.tiny import records, train_tiny

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_tiny(tmp_path_factory.mktemp("tiny"))


def test_the_files_for_torch_and_for_onnxruntime_give_the_same_spans(folder: Path) -> None:
    network, decoder, detector = (
        read_network(folder),
        read_decoder(folder),
        BiLstmCrfDetector(folder),
    )
    descriptions = [sample_from_record(record).description for record in records(40)]

    for text in (*descriptions, " ".join(descriptions * 20)):
        expected = decode(text, decoder.vocabulary, decoder.transitions, network.score)
        assert detector.detect(text) == expected != []
