from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
import torch

from pii_bench.scorer.tokens import tokenize
from pii_bench.systems.tagger.export import emissions_graph
from pii_bench.systems.tagger.network import BiLstmCrf
from pii_bench.systems.tagger.vocabulary import INPUTS, Vocabulary, inputs_of
from tests.systems.tagger.tiny import SETTINGS

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
