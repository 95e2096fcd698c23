"""From a text to spans, by any source of emissions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from pii_bench.scorer.tokens import tokenize
from pii_bench.systems.tagger.labels import spans_of
from pii_bench.systems.tagger.viterbi import best_labels

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from pii_bench.scorer.locate import DetectedSpan
    from pii_bench.scorer.tokens import Token
    from pii_bench.systems.tagger.viterbi import Transitions
    from pii_bench.systems.tagger.vocabulary import Features, Vocabulary

WINDOW: Final = 256
"""Tokens of a piece whose scores are kept."""

CONTEXT: Final = 64
"""Further tokens that a piece sees on either side."""


def decode(
    text: str,
    vocabulary: Vocabulary,
    transitions: Transitions,
    score: Callable[[Features], NDArray[np.float32]],
) -> list[DetectedSpan]:
    """The spans of the best label sequence, in order; a text without tokens has none.

    Args:
        text: of any length and script.
        vocabulary: makes the features.
        transitions: go with the emissions.
        score: gives emissions of shape (tokens, labels) for features of at least one token.
    """
    tokens = tokenize(text)
    if not tokens:
        return []
    emissions = emissions_of(text, tokens, vocabulary, score)
    return spans_of(text, tokens, best_labels(emissions, transitions))


def emissions_of(
    text: str,
    tokens: Sequence[Token],
    vocabulary: Vocabulary,
    score: Callable[[Features], NDArray[np.float32]],
) -> NDArray[np.float32]:
    """Scores of all tokens of a text, of which the network sees one piece at a time.

    Texts longer than those of training would ask of it what it never learned. The pieces'
    scores make one sequence, so that a span may stand across two of them.

    Args:
        text: of any length.
        tokens: its tokens, at least one.
        vocabulary: makes the features.
        score: gives shape (tokens, labels) for a piece.

    Returns:
        Shape (tokens, labels).
    """
    if len(tokens) <= WINDOW + 2 * CONTEXT:
        return score(vocabulary.encode(text, tokens))
    kept = np.empty((0, 0), np.float32)
    for first in range(0, len(tokens), WINDOW):
        start = max(0, first - CONTEXT)
        # A token's shape says whether it follows the one before without a space.
        before = max(0, start - 1)
        features = vocabulary.encode(text, tokens[before : first + WINDOW + CONTEXT])
        piece = score(features[start - before :])
        if not len(kept):
            # Filled piece by piece: pieces and their sum would take twice as much.
            kept = np.empty((len(tokens), piece.shape[1]), np.float32)
        kept[first : first + WINDOW] = piece[first - start : first - start + WINDOW]
    return kept
