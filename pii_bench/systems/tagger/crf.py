"""A linear-chain conditional random field over BIO labels (Lafferty et al. 2001).

The layers on PyPI are no longer kept up: the last releases of pytorch-crf, TorchCRF and
torch-struct are of 2019, 2020 and 2021.
"""

from __future__ import annotations

from typing import Final

import torch
from torch import Tensor, nn

from pii_bench.systems.tagger.labels import LABELS, OUTSIDE, may_follow

FORBIDDEN: Final = -1e4
"""Added to the score of a step that no BIO sequence takes."""


class Crf(nn.Module):
    """Scores of the first, the last and each pair of neighbouring labels."""

    forbidden: Tensor
    forbidden_start: Tensor

    def __init__(self) -> None:
        super().__init__()
        count = len(LABELS)
        self.start = nn.Parameter(torch.empty(count).uniform_(-0.1, 0.1))
        self.end = nn.Parameter(torch.empty(count).uniform_(-0.1, 0.1))
        self.pairs = nn.Parameter(torch.empty(count, count).uniform_(-0.1, 0.1))
        steps = [[may_follow(before, label) for label in range(count)] for before in range(count)]
        allowed = torch.tensor(steps)
        self.register_buffer("forbidden", ~allowed * FORBIDDEN, persistent=False)
        self.register_buffer("forbidden_start", ~allowed[OUTSIDE] * FORBIDDEN, persistent=False)

    @property
    def start_scores(self) -> Tensor:
        """Score of each label as the first, shape (labels,)."""
        return self.start + self.forbidden_start

    @property
    def pair_scores(self) -> Tensor:
        """Score of column behind row, shape (labels, labels)."""
        return self.pairs + self.forbidden

    def log_partition(self, emissions: Tensor, mask: Tensor) -> Tensor:
        """Log of the sum of exp(score) over all label sequences: the forward algorithm.

        Args:
            emissions: shape (texts, tokens, labels).
            mask: shape (texts, tokens), true for tokens; padding is behind them.

        Returns:
            Shape (texts,).
        """
        pairs = self.pair_scores
        total = self.start_scores + emissions[:, 0]
        for place in range(1, emissions.shape[1]):
            step = torch.logsumexp(total.unsqueeze(2) + pairs, dim=1) + emissions[:, place]
            total = torch.where(mask[:, place, None], step, total)
        return torch.logsumexp(total + self.end, dim=1)

    def score(self, emissions: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
        """Score of one label sequence per text.

        Args:
            emissions: shape (texts, tokens, labels).
            labels: shape (texts, tokens), any legal label where the mask is false.
            mask: as for `log_partition`.

        Returns:
            Shape (texts,).
        """
        own = emissions.gather(2, labels.unsqueeze(2)).squeeze(2)
        steps = self.pair_scores[labels[:, :-1], labels[:, 1:]]
        last = labels.gather(1, mask.sum(1, keepdim=True) - 1).squeeze(1)
        inner = (own * mask).sum(1) + (steps * mask[:, 1:]).sum(1)
        return self.start_scores[labels[:, 0]] + inner + self.end[last]

    def loss(self, emissions: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
        """Negative log-likelihood of the labels per text, averaged over the texts."""
        return (self.log_partition(emissions, mask) - self.score(emissions, labels, mask)).mean()
