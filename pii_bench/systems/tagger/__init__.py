"""BiLSTM-CRF tagger (Huang et al. 2015); only `train` and `network` need torch.

This module converts spans to BIO labels and back, and decodes the best labels of a text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from pii_bench.scorer.locate import DetectedSpan
from pii_bench.scorer.text import tokenize
from pii_bench.taxonomy import PiiType

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from pii_bench.datasets.sample import Sample
    from pii_bench.scorer.text import Token
    from pii_bench.systems.tagger.vocabulary import Features, Vocabulary

OUTSIDE: Final = 0
LABELS: Final = ("O", *(f"{place}-{pii_type}" for pii_type in PiiType for place in "BI"))
"""O, then B and I of each of the seven types: the index is what networks and files hold."""

_TYPES: Final = tuple(PiiType)

# Never at the edge of an annotated span, unlike `$`, `@`, `%`, `+` and `.`.
_TRIMMED: Final = frozenset(",;:!?…“”„«»—–")


def begin(pii_type: PiiType) -> int:
    """Return the label of the first token of a span."""
    return 1 + 2 * _TYPES.index(pii_type)


def may_follow(before: int, label: int) -> bool:
    """Return True if a label may follow another (`OUTSIDE` at the start): I only after B or I."""
    inside = label != OUTSIDE and label % 2 == 0
    return not inside or before in {label - 1, label}


def gold_spans(sample: Sample) -> list[DetectedSpan]:
    """Return the annotated spans of a sample in order; of two that overlap only the first."""
    spans: list[DetectedSpan] = []
    for start, end, pii_type in sorted(
        (start, end, entity.type) for entity in sample.entities for start, end in entity.spans
    ):
        if not spans or start >= spans[-1].end:
            spans.append(DetectedSpan(start, end, PiiType(pii_type)))
    return spans


def labels_of(tokens: Sequence[Token], spans: Sequence[DetectedSpan]) -> list[int]:
    """Return one label per token; a token that overlaps a span belongs to it.

    Args:
        tokens: of one text.
        spans: of the same text, in order, none overlapping another.
    """
    labels = [OUTSIDE] * len(tokens)
    for span in spans:
        label = begin(span.type)
        for place, token in enumerate(tokens):
            if token.start < span.end and token.end > span.start:
                labels[place] = label
                label = begin(span.type) + 1
    return labels


def spans_of(text: str, tokens: Sequence[Token], labels: Sequence[int]) -> list[DetectedSpan]:
    """Return the spans of labels, without punctuation that never ends an annotated span.

    An I that nothing of its type precedes begins a span, as conlleval reads it.
    """
    runs: list[tuple[PiiType, list[Token]]] = []
    before = OUTSIDE
    for token, label in zip(tokens, labels, strict=True):
        if label != OUTSIDE:
            if label % 2 == 1 or not may_follow(before, label):
                runs.append((_TYPES[(label - 1) // 2], []))
            runs[-1][1].append(token)
        before = label
    trimmed = ((pii_type, _trim(text, run)) for pii_type, run in runs)
    return [DetectedSpan(run[0].start, run[-1].end, pii_type) for pii_type, run in trimmed if run]


def _trim(text: str, tokens: Sequence[Token]) -> Sequence[Token]:
    kept = [
        place for place, token in enumerate(tokens) if text[token.start : token.end] not in _TRIMMED
    ]
    return tokens[kept[0] : kept[-1] + 1] if kept else []


@dataclass(frozen=True, slots=True)
class Transitions:
    """The transition scores of a conditional random field.

    Attributes:
        start: score of each label as the first, shape (labels,).
        pairs: score of column behind row, shape (labels, labels).
        end: score of each label as the last, shape (labels,).
    """

    start: NDArray[np.float32]
    pairs: NDArray[np.float32]
    end: NDArray[np.float32]


def best_labels(emissions: NDArray[np.float32], transitions: Transitions) -> list[int]:
    """Return the label sequence with the highest score; ties prefer lower labels at the end.

    Args:
        emissions: shape (tokens, labels); no tokens give no labels.
        transitions: of the same labels.
    """
    if not len(emissions):
        return []
    score = transitions.start + emissions[0]
    # Row by label, column by the label before: the maximum runs along memory.
    into = np.ascontiguousarray(transitions.pairs.T)
    # A byte holds a label: a text of millions of tokens has as many rows.
    origins = np.empty(emissions.shape, np.uint8)
    for place in range(1, len(emissions)):
        paths = into + score
        origins[place] = paths.argmax(axis=1)
        score = paths.max(axis=1) + emissions[place]
    label = int((score + transitions.end).argmax())
    labels = [label]
    for place in range(len(emissions) - 1, 0, -1):
        label = int(origins[place, label])
        labels.append(label)
    return labels[::-1]


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
    """Return the spans of the best label sequence, in order; none for a text without tokens.

    `score` gives emissions of shape (tokens, labels) for features of at least one token.
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
    """Return the emission scores of all tokens of a text, computed piece by piece.

    Texts longer than those of training would ask of it what it never learned. The pieces'
    scores make one sequence, so that a span may reach across two of them.

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
