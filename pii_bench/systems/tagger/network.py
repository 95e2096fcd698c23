"""The network that gives each token a score per label."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from pii_bench.systems.tagger.crf import Crf
from pii_bench.systems.tagger.labels import LABELS
from pii_bench.systems.tagger.viterbi import Transitions
from pii_bench.systems.tagger.vocabulary import PADDING, SHAPES, inputs_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pii_bench.systems.tagger.batches import Batch
    from pii_bench.systems.tagger.settings import Sizes
    from pii_bench.systems.tagger.vocabulary import Features, Vocabulary


class Emissions(nn.Module):
    """Word, shape and character features through a bidirectional LSTM.

    Huang et al. (2015, Sections 2.5 and 3), with a convolution over characters (Ma and Hovy
    2016, Section 2.1) instead of their n-gram features.

    Args:
        vocabulary: gives the tables their rows.
        sizes: of the layers.
        dropout: share of the LSTM's inputs and outputs that training leaves out.
    """

    def __init__(self, vocabulary: Vocabulary, sizes: Sizes, dropout: float) -> None:
        super().__init__()
        self.words = nn.Embedding(vocabulary.word_count, sizes.word, PADDING)
        self.shapes = nn.Embedding(SHAPES, sizes.shape, PADDING)
        self.characters = nn.Embedding(vocabulary.character_count, sizes.character, PADDING)
        self.convolution = nn.Conv1d(sizes.character, sizes.filters, kernel_size=3, padding=1)
        width = sizes.word + sizes.shape + sizes.filters
        # Two, not a bidirectional one: packing, which that needs for padded texts, makes a
        # step of training on a CPU take three times as long.
        self.rightwards = nn.LSTM(width, sizes.hidden, batch_first=True)
        self.leftwards = nn.LSTM(width, sizes.hidden, batch_first=True)
        self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear(2 * sizes.hidden, len(LABELS))

    def forward(
        self,
        words: Tensor,
        shapes: Tensor,
        spellings: Tensor,
        places: Tensor,
        lengths: Tensor,
    ) -> Tensor:
        """Score of each label for each token.

        Args:
            words: int64, shape (texts, tokens).
            shapes: int64, shape (texts, tokens).
            spellings: int64, shape (spellings, characters), each as often as one likes.
            places: int64, shape (texts, tokens), the row of a token's spelling.
            lengths: int64, shape (texts,); behind a text's length is padding.

        Returns:
            float32, shape (texts, tokens, labels).
        """
        letters = self.characters(spellings).transpose(1, 2)
        spelling = self.convolution(letters).amax(dim=2)[places]
        seen = torch.cat([self.words(words), self.shapes(shapes), spelling], dim=2)
        seen = self.dropout(seen)
        there, _ = self.rightwards(seen)
        back, _ = self.leftwards(_turn(seen, lengths))
        states = torch.cat([there, _turn(back, lengths)], dim=2)
        scores: Tensor = self.output(self.dropout(states))
        return scores


class BiLstmCrf(nn.Module):
    """The emissions and the conditional random field over them; see `Emissions`."""

    def __init__(self, vocabulary: Vocabulary, sizes: Sizes, dropout: float) -> None:
        super().__init__()
        self.emissions = Emissions(vocabulary, sizes, dropout)
        self.crf = Crf()

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.crf.end.device

    def loss(self, batch: Batch) -> Tensor:
        """Negative log-likelihood of the labels per text, averaged over the texts."""
        columns = (batch.words, batch.shapes, batch.spellings, batch.places, batch.lengths)
        scores = self.emissions(*(column.to(self.device) for column in columns))
        labels, mask = batch.labels.to(self.device), batch.mask.to(self.device)
        return self.crf.loss(scores, labels, mask)

    def score(self, features: Features) -> NDArray[np.float32]:
        """Emissions of one text of at least one token, shape (tokens, labels)."""
        length = np.array([len(features)])
        columns = (
            torch.from_numpy(column).to(self.device) for column in (*inputs_of(features), length)
        )
        with torch.inference_mode():
            scores: NDArray[np.float32] = self.emissions(*columns)[0].numpy(force=True)
        return scores

    def transitions(self) -> Transitions:
        """What the decoder needs of the conditional random field."""
        with torch.inference_mode():
            scores = (self.crf.start_scores, self.crf.pair_scores, self.crf.end)
            return Transitions(*(score.numpy(force=True).copy() for score in scores))


def _turn(steps: Tensor, lengths: Tensor) -> Tensor:
    """The steps of each text from its last to its first; padding stays behind them.

    Args:
        steps: shape (texts, tokens, features).
        lengths: shape (texts,).
    """
    place = torch.arange(steps.shape[1], device=steps.device).expand(steps.shape[:2])
    mirrored = lengths[:, None] - 1 - place
    turned = torch.where(mirrored >= 0, mirrored, place)
    return steps.gather(1, turned.unsqueeze(2).expand_as(steps))
