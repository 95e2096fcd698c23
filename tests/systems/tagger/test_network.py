from __future__ import annotations

from itertools import pairwise, product
from typing import TYPE_CHECKING

import numpy as np
import onnxruntime
import pytest
import torch

from pii_bench.datasets.sample import sample_from_record
from pii_bench.scorer.text import tokenize
from pii_bench.systems.detectors.bilstm_crf import BiLstmCrfDetector
from pii_bench.systems.tagger import LABELS, decode, may_follow
from pii_bench.systems.tagger.network import BiLstmCrf, Crf, emissions_graph, read_network
from pii_bench.systems.tagger.train import collate, example_of
from pii_bench.systems.tagger.vocabulary import Vocabulary, inputs_of, read_decoder
from tests.systems.tagger.tiny import SETTINGS, records, train_tiny

if TYPE_CHECKING:
    from pathlib import Path

COUNT = len(LABELS)


@pytest.fixture
def crf() -> Crf:
    torch.manual_seed(1)
    crf = Crf()
    for scores in crf.parameters():
        torch.nn.init.normal_(scores)
    return crf


def legal(labels: tuple[int, ...]) -> bool:
    return all(map(may_follow, (0, *labels), labels))


def brute_force(crf: Crf, emissions: torch.Tensor) -> dict[tuple[int, ...], float]:
    """The score of every legal sequence of one text, added up number by number."""
    own, start, end = emissions.tolist(), crf.start.tolist(), crf.end.tolist()
    pairs = crf.pairs.tolist()
    return {
        labels: start[labels[0]]
        + sum(own[place][label] for place, label in enumerate(labels))
        + sum(pairs[one][other] for one, other in pairwise(labels))
        + end[labels[-1]]
        for labels in filter(legal, product(range(COUNT), repeat=len(own)))
    }


@torch.no_grad()
def test_the_loss_is_the_mean_negative_log_likelihood_and_padding_counts_for_nothing(
    crf: Crf,
) -> None:
    emissions = torch.randn(2, 3, COUNT)
    person = (LABELS.index("B-PER"), LABELS.index("I-PER"))
    labels = torch.tensor([[*person, 0], [*person, 0]])
    mask = torch.tensor([[True, True, True], [True, True, False]])

    found = crf.loss(emissions, labels, mask).item()

    expected = 0.0
    for row, own in enumerate([(*person, 0), person]):
        scores = brute_force(crf, emissions[row, : len(own)])
        expected += (np.logaddexp.reduce([*scores.values()]) - scores[own]) / 2
    assert found == pytest.approx(expected, abs=1e-4)


VOCABULARY = Vocabulary(["lee", "is", "so", "00"], list("Leis."))
EXAMPLES = [example_of(sample_from_record(record), VOCABULARY) for record in records(20)]


@pytest.fixture
def network() -> BiLstmCrf:
    torch.manual_seed(1)
    return BiLstmCrf(VOCABULARY, SETTINGS.sizes, dropout=0.5).eval()


def test_padding_changes_no_score_and_no_loss(network: BiLstmCrf) -> None:
    short, long = EXAMPLES[0], EXAMPLES[1]
    short = type(short)(short.features[:4], short.labels[:4])

    batch = collate([short, long])
    with torch.inference_mode():
        together = network.emissions(
            batch.words, batch.shapes, batch.spellings, batch.places, batch.lengths
        ).numpy()
        losses = [network.loss(collate(part)) for part in ([short, long], [short], [long])]

    assert together.shape == (2, len(long.labels), len(LABELS))
    assert together[0, :4] == pytest.approx(network.score(short.features), abs=1e-6)
    assert together[1] == pytest.approx(network.score(long.features), abs=1e-6)
    assert losses[0].item() == pytest.approx((losses[1] + losses[2]).item() / 2, rel=1e-5)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_tiny(tmp_path_factory.mktemp("tiny"))


def test_the_files_for_torch_and_for_onnxruntime_give_the_same_spans(folder: Path) -> None:
    network, detector = read_network(folder), BiLstmCrfDetector(folder)
    decoder = read_decoder(folder)
    descriptions = [sample_from_record(record).description for record in records(40)]

    for text in (*descriptions, " ".join(descriptions * 20)):
        expected = decode(text, *decoder, network.score)
        assert detector.detect(text) == expected != []


@pytest.mark.parametrize("text", ["Lee", "Lee is 42. " * 100])
def test_onnxruntime_computes_what_torch_does(text: str) -> None:
    torch.manual_seed(1)
    network = BiLstmCrf(VOCABULARY, SETTINGS.sizes, dropout=0.5).eval().half().float()
    features = VOCABULARY.encode(text, tokenize(text))
    session = onnxruntime.InferenceSession(
        emissions_graph(network).SerializeToString(), providers=["CPUExecutionProvider"]
    )

    (emissions,) = session.run(None, inputs_of(features))

    np.testing.assert_allclose(emissions[0], network.score(features), atol=1e-5)
