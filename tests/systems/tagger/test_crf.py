from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest
import torch

from pii_bench.systems.tagger.crf import Crf
from pii_bench.systems.tagger.labels import LABELS, may_follow
from pii_bench.systems.tagger.viterbi import Transitions, best_labels

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
def test_the_partition_is_the_sum_over_all_legal_sequences(crf: Crf) -> None:
    emissions = torch.randn(2, 3, COUNT)
    mask = torch.tensor([[True, True, True], [True, True, False]])

    found = crf.log_partition(emissions, mask).tolist()

    for row, length in enumerate((3, 2)):
        scores = brute_force(crf, emissions[row, :length])
        assert found[row] == pytest.approx(np.logaddexp.reduce([*scores.values()]), abs=1e-4)


@torch.no_grad()
def test_the_decoder_finds_the_best_legal_sequence(crf: Crf) -> None:
    parts = (crf.start_scores, crf.pair_scores, crf.end)
    transitions = Transitions(*(part.numpy() for part in parts))
    for _ in range(5):
        emissions = torch.randn(3, COUNT)
        scores = brute_force(crf, emissions)

        best = best_labels(emissions.numpy(), transitions)

        assert tuple(best) == max(scores, key=scores.__getitem__)


@torch.no_grad()
def test_the_score_is_that_of_the_labels_before_the_padding(crf: Crf) -> None:
    emissions = torch.randn(2, 3, COUNT)
    mask = torch.tensor([[True, True, True], [True, True, False]])
    person = (LABELS.index("B-PER"), LABELS.index("I-PER"))
    labels = torch.tensor([[*person, 0], [*person, 0]])

    found = crf.score(emissions, labels, mask).tolist()

    assert found[0] == pytest.approx(brute_force(crf, emissions[0])[*person, 0], abs=1e-4)
    assert found[1] == pytest.approx(brute_force(crf, emissions[1, :2])[person], abs=1e-4)


def test_the_loss_is_the_mean_negative_log_likelihood(crf: Crf) -> None:
    emissions = torch.randn(2, 2, COUNT)
    labels = torch.tensor([[0, 0], [1, 2]])

    loss = crf.loss(emissions, labels, torch.ones(2, 2, dtype=torch.bool))

    expected = 0.0
    for row, own in enumerate([(0, 0), (1, 2)]):
        scores = brute_force(crf, emissions[row])
        expected += (np.logaddexp.reduce([*scores.values()]) - scores[own]) / 2
    assert loss.item() == pytest.approx(expected, abs=1e-4)
