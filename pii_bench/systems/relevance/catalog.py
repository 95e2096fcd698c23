"""Relevance systems by name."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from pii_bench.errors import InputFileError, UnknownNameError
from pii_bench.systems import ENCODER
from pii_bench.systems.relevance.baselines import Constant, RandomChoice
from pii_bench.systems.relevance.embedding import (
    EmbeddingRelevance,
    MiniLmEncoder,
    WordLlamaEncoder,
)
from pii_bench.systems.relevance.keyword import KeywordRelevance
from pii_bench.systems.relevance.thresholds import (
    THRESHOLDS,
    best_threshold,
    read_thresholds,
    share_threshold,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pii_bench.systems.relevance.base import Relevance
    from pii_bench.systems.relevance.thresholds import Scored


@dataclass(frozen=True, slots=True)
class Fitted:
    """A system whose threshold is fitted on dev.

    Attributes:
        build: makes it with a threshold.
        rule: finds the threshold.
        extra: whether it needs what an optional extra installs.
    """

    build: Callable[[float], Relevance]
    rule: Callable[[Sequence[Scored]], float] = best_threshold
    extra: bool = False


FITTED: Final[Mapping[str, Fitted]] = MappingProxyType(
    {
        "random": Fitted(RandomChoice, share_threshold),
        "keyword": Fitted(KeywordRelevance),
        "embedding": Fitted(
            lambda threshold: EmbeddingRelevance("embedding", WordLlamaEncoder(), threshold)
        ),
        "embedding-minilm": Fitted(
            lambda threshold: EmbeddingRelevance("embedding-minilm", MiniLmEncoder(), threshold),
            extra=True,
        ),
    }
)


def build_relevance(name: str) -> Relevance:
    """Make a system of `RELEVANCE`.

    Raises:
        UnknownNameError: no such system.
        MissingExtraError: what it needs is not installed.
        InputFileError: its threshold or its weights are missing or broken.
    """
    if name not in RELEVANCE:
        raise UnknownNameError("relevance system", name, RELEVANCE)
    return RELEVANCE[name]()


def _with_stored_threshold(name: str) -> Relevance:
    stored = read_thresholds()
    if name not in stored:
        raise InputFileError(THRESHOLDS, f"holds no threshold of {name!r}")
    return FITTED[name].build(stored[name]["threshold"])


def _of_encoder() -> Relevance:
    from pii_bench.systems.encoder.relevance import EncoderScores

    return EncoderScores()


RELEVANCE: Final[Mapping[str, Callable[[], Relevance]]] = MappingProxyType(
    {
        "all": partial(Constant, "all", 1.0),
        "none": partial(Constant, "none", 0.0),
        **{name: partial(_with_stored_threshold, name) for name in FITTED},
        ENCODER: _of_encoder,
    }
)
"""By name, what makes the system. Those of `FITTED` take their threshold from `THRESHOLDS`."""
