from __future__ import annotations

from itertools import chain

import numpy as np
import torch

from pii_bench.systems.tagger.batches import Example, collate, example_of, forget_words, shuffled
from pii_bench.systems.tagger.labels import LABELS
from pii_bench.systems.tagger.vocabulary import UNKNOWN, Vocabulary
from tests.builders import make_sample

VOCABULARY = Vocabulary(["ann", "lee", "is", "00", "."], list("Anleis32."))


def example_of_length(words: int) -> Example:
    sample = make_sample(description="is " * words, subjects=[], related=[])
    return example_of(sample, VOCABULARY)


def test_an_example_holds_a_label_for_every_token() -> None:
    example = example_of(make_sample(), VOCABULARY)

    assert example.features.words.tolist() == [2, 3, 4, 5, 6]
    assert [LABELS[label] for label in example.labels] == ["B-PER", "I-PER", "O", "B-DEM", "O"]


def test_shorter_texts_are_padded() -> None:
    short = example_of_length(2)

    batch = collate([short, example_of(make_sample(), VOCABULARY)])

    assert batch.words.tolist() == [[4, 4, 0, 0, 0], [2, 3, 4, 5, 6]]
    assert batch.shapes[0].tolist()[2:] == batch.labels[0].tolist()[2:] == [0, 0, 0]
    assert batch.lengths.tolist() == [2, 5]
    assert batch.mask.sum(1).tolist() == [2, 5]
    spelled = batch.spellings[batch.places]
    assert spelled[1].tolist() == example_of(make_sample(), VOCABULARY).features.characters.tolist()
    assert not spelled[0, 2:].any()


def test_an_epoch_has_every_example_once_in_an_order_of_the_seed() -> None:
    examples = [example_of_length(words) for words in range(1, 71)]

    def epoch(seed: int) -> list[list[int]]:
        batches = shuffled(examples, 4, np.random.default_rng(seed))
        return [batch.lengths.tolist() for batch in batches]

    lengths = epoch(1)
    assert sorted(chain(*lengths)) == list(range(1, 71))
    assert epoch(1) == lengths != epoch(2)


def test_batches_hold_texts_of_like_length() -> None:
    examples = [example_of_length(words) for words in [1, 50] * 32]

    batches = list(shuffled(examples, 8, np.random.default_rng(1)))

    assert all(len(set(batch.lengths.tolist())) == 1 for batch in batches)


def test_a_share_of_the_words_is_forgotten_and_padding_stays() -> None:
    torch.manual_seed(1)
    words = torch.full((100, 100), 7)
    words[:, 50:] = 0

    seen = forget_words(words, 0.2)

    assert set(seen[:, :50].flatten().tolist()) == {UNKNOWN, 7}
    assert 900 < (seen == UNKNOWN).sum() < 1100
    assert not seen[:, 50:].any()
    assert forget_words(words, 0).equal(words)
