from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import onnxruntime
import pytest
import torch

from pii_bench.datasets.sample import sample_from_record
from pii_bench.scorer.text import tokenize
from pii_bench.systems.detectors.bilstm_crf import BiLstmCrfDetector
from pii_bench.systems.tagger.export import emissions_graph, read_network
from pii_bench.systems.tagger.files import read_decoder
from pii_bench.systems.tagger.labels import decode
from pii_bench.systems.tagger.network import BiLstmCrf
from pii_bench.systems.tagger.vocabulary import INPUTS, Vocabulary, inputs_of
from tests.systems.tagger.tiny import SETTINGS, records, train_tiny

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


VOCABULARY = Vocabulary(["lee", "is", "so", "00"], list("Leis."))


@pytest.mark.parametrize(
    "text", ["Lee", "Ann Lee is 42.", "Lee is 42. " * 100, "王小明 é Ωμέγα 👍"]
)
def test_onnxruntime_computes_what_torch_does(text: str) -> None:
    torch.manual_seed(1)
    network = BiLstmCrf(VOCABULARY, SETTINGS.sizes, dropout=0.5).eval().half().float()
    features = VOCABULARY.encode(text, tokenize(text))
    session = onnxruntime.InferenceSession(
        emissions_graph(network).SerializeToString(), providers=["CPUExecutionProvider"]
    )

    (emissions,) = session.run(None, dict(zip(INPUTS, inputs_of(features), strict=True)))

    np.testing.assert_allclose(emissions[0], network.score(features), atol=1e-5)
