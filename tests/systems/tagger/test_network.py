from __future__ import annotations

import pytest
import torch

from pii_bench.datasets.native import sample_from_record
from pii_bench.systems.tagger.batches import collate, example_of
from pii_bench.systems.tagger.labels import LABELS
from pii_bench.systems.tagger.network import BiLstmCrf
from pii_bench.systems.tagger.vocabulary import Vocabulary
from tests.systems.tagger.tiny import SETTINGS, records

VOCABULARY = Vocabulary(["lee", "is", "so", "00"], list("Leis."))
EXAMPLES = [example_of(sample_from_record(record), VOCABULARY) for record in records(20)]


@pytest.fixture
def network() -> BiLstmCrf:
    torch.manual_seed(1)
    return BiLstmCrf(VOCABULARY, SETTINGS.sizes, dropout=0.5).eval()


def test_padding_changes_no_score(network: BiLstmCrf) -> None:
    short, long = EXAMPLES[0], EXAMPLES[1]
    short = type(short)(short.features[:4], short.labels[:4])

    batch = collate([short, long])
    with torch.inference_mode():
        together = network.emissions(
            batch.words, batch.shapes, batch.spellings, batch.places, batch.lengths
        ).numpy()

    assert together.shape == (2, len(long.labels), len(LABELS))
    assert together[0, :4] == pytest.approx(network.score(short.features), abs=1e-6)
    assert together[1] == pytest.approx(network.score(long.features), abs=1e-6)


def test_a_score_depends_on_what_stands_before_and_behind(network: BiLstmCrf) -> None:
    whole = EXAMPLES[0].features
    alone = network.score(whole[1:2])[0]

    assert network.score(whole[:2])[1] != pytest.approx(alone, abs=1e-4)
    assert network.score(whole[1:3])[0] != pytest.approx(alone, abs=1e-4)


def test_the_loss_of_a_batch_is_the_mean_of_its_texts(network: BiLstmCrf) -> None:
    alone = [network.loss(collate([example])).item() for example in EXAMPLES[:3]]

    together = network.loss(collate(EXAMPLES[:3])).item()

    assert together == pytest.approx(sum(alone) / 3, rel=1e-5)
