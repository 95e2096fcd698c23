"""Texts side by side, padded to the longest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import torch
from torch import Tensor

from pii_bench.scorer.tokens import tokenize
from pii_bench.systems.tagger.labels import OUTSIDE, gold_spans, labels_of
from pii_bench.systems.tagger.vocabulary import CHARACTERS, PADDING, UNKNOWN, distinct

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from pii_bench.datasets.sample import Sample
    from pii_bench.systems.tagger.vocabulary import Features, Vocabulary

# Batches sorted by length together: little padding, and still another order every epoch.
_SORTED_TOGETHER: Final = 16


@dataclass(frozen=True, slots=True)
class Example:
    """A text as the network sees it, with the label of every token."""

    features: Features
    labels: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Batch:
    """Examples side by side, padded to the longest.

    Attributes:
        words: int64, shape (texts, tokens).
        shapes: int64, shape (texts, tokens).
        spellings: int64, shape (spellings, characters).
        places: int64, shape (texts, tokens), the row of a token's spelling.
        labels: int64, shape (texts, tokens).
        lengths: int64, shape (texts,).
    """

    words: Tensor
    shapes: Tensor
    spellings: Tensor
    places: Tensor
    labels: Tensor
    lengths: Tensor

    @property
    def mask(self) -> Tensor:
        """True for tokens, false for padding, shape (texts, tokens)."""
        return torch.arange(self.words.shape[1]) < self.lengths[:, None]


def example_of(sample: Sample, vocabulary: Vocabulary) -> Example:
    """A sample with its gold labels; its description must hold a visible character."""
    tokens = tokenize(sample.description)
    labels = np.array(labels_of(tokens, gold_spans(sample)), np.int64)
    return Example(vocabulary.encode(sample.description, tokens), labels)


def collate(examples: Sequence[Example]) -> Batch:
    """Put examples side by side."""
    lengths = np.array([len(example.labels) for example in examples], np.int64)
    shape = (len(examples), int(lengths.max()))
    words, shapes = np.full(shape, PADDING, np.int64), np.full(shape, PADDING, np.int64)
    characters = np.full((*shape, CHARACTERS), PADDING, np.int64)
    labels = np.full(shape, OUTSIDE, np.int64)
    for row, example in enumerate(examples):
        length = len(example.labels)
        words[row, :length] = example.features.words
        shapes[row, :length] = example.features.shapes
        characters[row, :length] = example.features.characters
        labels[row, :length] = example.labels
    columns = (words, shapes, *distinct(characters), labels, lengths)
    return Batch(*map(torch.from_numpy, columns))


def shuffled(
    examples: Sequence[Example], size: int, random: np.random.Generator
) -> Iterator[Batch]:
    """Every example once, in batches of texts of like length, in a random order."""
    order = random.permutation(len(examples))
    chunk = size * _SORTED_TOGETHER
    groups: list[NDArray[np.intp]] = []
    for first in range(0, len(order), chunk):
        together = sorted(order[first : first + chunk], key=lambda row: -len(examples[row].labels))
        groups += [np.array(together[at : at + size]) for at in range(0, len(together), size)]
    for group in random.permutation(len(groups)):
        yield collate([examples[row] for row in groups[group]])


def forget_words(words: Tensor, share: float) -> Tensor:
    """Replace a random share of the words by the unknown one; padding stays.

    The network then learns what to do with a word that no training text holds.
    """
    forgotten = torch.rand(words.shape) < share
    return words.masked_fill(forgotten & (words != PADDING), UNKNOWN)
