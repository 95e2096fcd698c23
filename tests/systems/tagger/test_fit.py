from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
import torch

from pii_bench.datasets.native import sample_from_record
from pii_bench.systems.tagger import fit as fitting
from pii_bench.systems.tagger.fit import fit
from pii_bench.systems.tagger.scores import SpanScore
from tests.builders import make_sample
from tests.systems.tagger.tiny import SETTINGS, records

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pii_bench.systems.tagger.settings import Epoch

YOUNG = [sample_from_record(record) for record in records(20)]
OLD = [sample_from_record(record) for record in records(60)]


@pytest.mark.parametrize(
    ("curve", "epochs", "best"),
    [
        ([0.5, 0.6, 0.6, 0.6], 4, 2),
        ([0.5, 0.4, 0.6, 0.5, 0.5], 5, 3),
        ([0.0, 0.0, 0.0], 3, 1),
        ([0.1, 0.2, 0.3, 0.4, 0.5, 0.6], 6, 6),
    ],
)
def test_training_stops_when_dev_has_not_got_better_for_a_while(
    monkeypatch: pytest.MonkeyPatch, curve: list[float], epochs: int, best: int
) -> None:
    scores: Iterator[SpanScore] = iter([SpanScore(0, 0, f1) for f1 in curve])
    monkeypatch.setattr(fitting, "dev_score", lambda *_: next(scores))
    reported: list[Epoch] = []

    trained = fit(YOUNG, OLD, replace(SETTINGS, patience=2, epochs=6), reported.append)

    assert (len(trained.epochs), trained.best) == (epochs, best)
    assert tuple(reported) == trained.epochs


def test_the_weights_are_those_of_the_best_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    def fit_with(curve: list[float]) -> torch.Tensor:
        scores = iter([SpanScore(0, 0, f1) for f1 in curve])
        monkeypatch.setattr(fitting, "dev_score", lambda *_: next(scores))
        settings = replace(SETTINGS, epochs=len(curve))
        return fit(YOUNG, OLD, settings, lambda _: None).network.emissions.words.weight

    assert fit_with([0.5, 0.4]).equal(fit_with([0.5]))
    assert not fit_with([0.5, 0.6]).equal(fit_with([0.5]))


def test_the_vocabulary_comes_from_train_alone() -> None:
    dev = [make_sample(description="Zoë Lee is 32.", subjects=[], related=[])]

    vocabulary = fit(YOUNG, dev, replace(SETTINGS, epochs=1, least=1), lambda _: None).vocabulary

    assert {"A", "ü"} < set(vocabulary.characters)
    assert not {"Z", "ë"} & set(vocabulary.characters)


def test_the_network_holds_numbers_of_half_precision() -> None:
    network = fit(YOUNG, OLD, replace(SETTINGS, epochs=1), lambda _: None).network

    assert not network.training
    for weight in network.parameters():
        assert weight.dtype == torch.float32
        assert weight.half().float().equal(weight)
