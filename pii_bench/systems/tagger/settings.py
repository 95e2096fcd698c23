"""Settings and reports of a training run, without torch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pii_bench.scorer import PRF


@dataclass(frozen=True, slots=True)
class Sizes:
    """Numbers of dimensions: of embeddings, of the convolution, and of the LSTM per direction."""

    word: int = 64
    shape: int = 8
    character: int = 24
    filters: int = 48
    hidden: int = 128


@dataclass(frozen=True, slots=True)
class Settings:
    """Training settings; the first three are the paper's (`benchmark.md`, "Models in the paper").

    Attributes:
        patience: epochs without a better dev F1 after which training stops.
        dropout: share of the LSTM's inputs and outputs left out.
        forgotten: share of words replaced by the unknown one.
        least: occurrences in train that make a word or character known.
        clip: largest norm of the gradient.
        spelling: whether a token is seen by its shape and characters as well as its word.
    """

    learning_rate: float = 1e-3
    batch: int = 32
    epochs: int = 50
    patience: int = 4
    dropout: float = 0.5
    forgotten: float = 0.2
    least: int = 2
    clip: float = 5.0
    spelling: bool = True
    seed: int = 13
    sizes: Sizes = field(default_factory=Sizes)


@dataclass(frozen=True, slots=True)
class Epoch:
    """One point of the dev curve: mean loss of a training text, and exact span scores on dev."""

    number: int
    loss: float
    dev: PRF
    seconds: float
