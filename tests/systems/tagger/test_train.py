from __future__ import annotations

import json
from dataclasses import replace
from hashlib import sha256
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch

from pii_bench.datasets.sample import sample_from_record
from pii_bench.errors import InputFileError
from pii_bench.scorer import PRF
from pii_bench.systems.tagger import LABELS
from pii_bench.systems.tagger import train as fitting
from pii_bench.systems.tagger.settings import Settings
from pii_bench.systems.tagger.train import (
    Example,
    collate,
    example_of,
    fit,
    forget_words,
    shuffled,
    train,
)
from pii_bench.systems.tagger.vocabulary import LOG, UNKNOWN, Vocabulary
from tests.builders import make_sample, read_folder
from tests.systems.tagger.tiny import SETTINGS, records, train_tiny

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pii_bench.systems.tagger.settings import Epoch

VOCABULARY = Vocabulary(["ann", "lee", "is", "00", "."], list("Anleis32."))


def example_of_length(words: int) -> Example:
    sample = make_sample(description="is " * words, subjects=[], related=[])
    return example_of(sample, VOCABULARY)


def test_every_token_has_a_label_and_shorter_texts_are_padded() -> None:
    long = example_of(make_sample(), VOCABULARY)

    batch = collate([example_of_length(2), long])

    assert batch.words.tolist() == [[4, 4, 0, 0, 0], [2, 3, 4, 5, 6]]
    assert [LABELS[label] for label in batch.labels[1]] == ["B-PER", "I-PER", "O", "B-DEM", "O"]
    assert batch.shapes[0].tolist()[2:] == batch.labels[0].tolist()[2:] == [0, 0, 0]
    assert batch.lengths.tolist() == [2, 5]
    assert batch.mask.sum(1).tolist() == [2, 5]
    spelled = batch.spellings[batch.places]
    assert spelled[1].tolist() == long.features.characters.tolist()
    assert not spelled[0, 2:].any()


def test_an_epoch_has_every_example_once_in_an_order_of_the_seed() -> None:
    examples = [example_of_length(words) for words in range(1, 71)]

    def epoch(seed: int) -> list[list[int]]:
        batches = shuffled(examples, 4, np.random.default_rng(seed))
        return [batch.lengths.tolist() for batch in batches]

    lengths = epoch(1)
    assert sorted(chain(*lengths)) == list(range(1, 71))
    assert epoch(1) == lengths != epoch(2)


def test_a_share_of_the_words_is_forgotten_and_padding_stays() -> None:
    torch.manual_seed(1)
    words = torch.full((100, 100), 7)
    words[:, 50:] = 0

    seen = forget_words(words, 0.2)

    assert set(seen[:, :50].flatten().tolist()) == {UNKNOWN, 7}
    assert 900 < (seen == UNKNOWN).sum() < 1100
    assert not seen[:, 50:].any()
    assert forget_words(words, 0).equal(words)


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
    scores: Iterator[PRF] = iter([PRF(0, 0, f1) for f1 in curve])
    monkeypatch.setattr(fitting, "dev_score", lambda *_: next(scores))
    reported: list[Epoch] = []

    trained = fit(YOUNG, OLD, replace(SETTINGS, patience=2, epochs=6), reported.append)

    assert (len(trained.epochs), trained.best) == (epochs, best)
    assert tuple(reported) == trained.epochs


def test_the_weights_are_those_of_the_best_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    def fit_with(*curve: float) -> torch.Tensor:
        scores = iter([PRF(0, 0, f1) for f1 in curve])
        monkeypatch.setattr(fitting, "dev_score", lambda *_: next(scores))
        settings = replace(SETTINGS, epochs=len(curve))
        return fit(YOUNG, OLD, settings, lambda _: None).network.emissions.words.weight

    assert fit_with(0.5, 0.4).equal(fit_with(0.5))
    assert not fit_with(0.5, 0.6).equal(fit_with(0.5))


def test_the_vocabulary_is_of_train_alone_and_weights_are_of_half_precision() -> None:
    dev = [make_sample(description="Zoë Lee is 32.", subjects=[], related=[])]

    trained = fit(YOUNG, dev, replace(SETTINGS, epochs=1, least=1), lambda _: None)

    characters = set(trained.vocabulary.characters)
    assert {"A", "ü"} < characters
    assert not {"Z", "ë"} & characters
    assert not trained.network.training
    for weight in trained.network.parameters():
        assert weight.dtype == torch.float32
        assert weight.half().float().equal(weight)


def test_the_log_tells_how_the_weights_came_about(tmp_path: Path) -> None:
    log = json.loads((train_tiny(tmp_path) / LOG).read_text(encoding="utf-8"))

    assert log["settings"]["seed"] == 13
    assert log["settings"]["sizes"]["hidden"] == 10
    assert set(log["versions"]) == {"python", "torch", "numpy", "onnx", "safetensors"}
    for part in ("train", "dev"):
        content = (tmp_path / f"{part}.jsonl").read_bytes()
        assert log[part] == [{"file": f"{part}.jsonl", "sha256": sha256(content).hexdigest()}]
    assert [epoch["number"] for epoch in log["epochs"]] == list(range(1, len(log["epochs"]) + 1))
    curve = [epoch["dev"]["f1"] for epoch in log["epochs"]]
    assert curve[log["best_epoch"] - 1] == max(curve) > 0.9
    assert log["dev_of_files"]["f1"] == pytest.approx(max(curve), abs=0.05)


def test_the_same_seed_gives_the_same_weights(tmp_path: Path) -> None:
    def weights(name: str, seed: int) -> dict[str, bytes]:
        files = read_folder(train_tiny(tmp_path / name, replace(SETTINGS, epochs=2, seed=seed)))
        del files[LOG]
        return files

    assert weights("one", 1) == weights("again", 1)
    assert weights("one", 1) != weights("other", 2)


def test_a_dataset_that_is_missing_is_named_before_any_training(tmp_path: Path) -> None:
    def unreached(_: object) -> None:
        raise AssertionError("trained")

    missing = tmp_path / "no.jsonl"
    with pytest.raises(InputFileError, match=r"no\.jsonl"):
        train([missing], [missing], tmp_path / "model", unreached, Settings())
    assert not (tmp_path / "model").exists()
