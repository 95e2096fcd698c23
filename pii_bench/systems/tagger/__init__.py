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
"""O, then B and I of each of the seven types; networks and files use the indices."""

_TYPES: Final = tuple(PiiType)

# Characters that never begin or end an annotated span, unlike `$`, `@`, `%`, `+` and `.`.
_TRIMMED: Final = frozenset(",;:!?…“”„«»—–")


def begin(pii_type: PiiType) -> int:
    """Return the B label of a type; its I label is the next."""
    return 1 + 2 * _TYPES.index(pii_type)


def may_follow(before: int, label: int) -> bool:
    """Return True if a label may follow another: I only after B or I of its type.

    Before the first label is `OUTSIDE`.
    """
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

    The spans are in order and do not overlap.
    """
    labels = [OUTSIDE] * len(tokens)
    for span in spans:
        label = begin(span.type)
        for index, token in enumerate(tokens):
            if token.start < span.end and token.end > span.start:
                labels[index] = label
                label = begin(span.type) + 1
    return labels


def spans_of(text: str, tokens: Sequence[Token], labels: Sequence[int]) -> list[DetectedSpan]:
    """Return the spans of labels, without punctuation that never begins or ends one.

    As in conlleval, an I that does not follow B or I of its type begins a span.
    """
    labelled: list[tuple[PiiType, list[Token]]] = []
    before = OUTSIDE
    for token, label in zip(tokens, labels, strict=True):
        if label != OUTSIDE:
            if label % 2 == 1 or not may_follow(before, label):
                labelled.append((_TYPES[(label - 1) // 2], []))
            _, span_tokens = labelled[-1]
            span_tokens.append(token)
        before = label
    spans: list[DetectedSpan] = []
    for pii_type, span_tokens in labelled:
        words = [t for t in span_tokens if text[t.start : t.end] not in _TRIMMED]
        if words:
            spans.append(DetectedSpan(words[0].start, words[-1].end, pii_type))
    return spans


@dataclass(frozen=True, slots=True)
class Transitions:
    """The transition scores of a conditional random field.

    `start` and `end` score a label as the first and the last, shape (labels,); `pairs` scores the
    label of a column after that of a row.
    """

    start: NDArray[np.float32]
    pairs: NDArray[np.float32]
    end: NDArray[np.float32]


def best_labels(emissions: NDArray[np.float32], transitions: Transitions) -> list[int]:
    """Return the label sequence with the highest score; ties prefer lower labels at the end.

    The emissions have the shape (tokens, labels), maybe without a token.
    """
    if not len(emissions):
        return []
    score = transitions.start + emissions[0]
    # Bytes, because a text can have millions of tokens.
    best_previous = np.empty(emissions.shape, np.uint8)
    for index in range(1, len(emissions)):
        # One row per previous label, one column per label.
        paths = score[:, None] + transitions.pairs
        best_previous[index] = paths.argmax(axis=0)
        score = paths.max(axis=0) + emissions[index]
    labels = [int((score + transitions.end).argmax())]
    for previous in best_previous[:0:-1]:
        labels.append(int(previous[labels[-1]]))
    return labels[::-1]


WINDOW: Final = 256
"""Number of tokens of a piece whose scores are used."""

CONTEXT: Final = 64
"""Number of tokens of context on either side of a piece."""


def decode(
    text: str,
    vocabulary: Vocabulary,
    transitions: Transitions,
    score: Callable[[Features], NDArray[np.float32]],
) -> list[DetectedSpan]:
    """Return the spans of the best label sequence, in order.

    `score` returns the emission scores, shape (tokens, labels), of at least one token.
    """
    tokens = tokenize(text)
    if not tokens:
        return []
    labels = best_labels(emissions_of(text, tokens, vocabulary, score), transitions)
    return spans_of(text, tokens, labels)


def emissions_of(
    text: str,
    tokens: Sequence[Token],
    vocabulary: Vocabulary,
    score: Callable[[Features], NDArray[np.float32]],
) -> NDArray[np.float32]:
    """Return the emission scores of all tokens of a text, shape (tokens, labels).

    A long text is scored in pieces, because the network was trained on short ones. The scores
    form one sequence, so that a span can reach across two pieces.
    """
    if len(tokens) <= WINDOW + 2 * CONTEXT:
        return score(vocabulary.encode(text, tokens))
    emissions = np.empty((len(tokens), len(LABELS)), np.float32)
    for first in range(0, len(tokens), WINDOW):
        start = max(0, first - CONTEXT)
        # The shape of a token depends on whether a space separates it from the one before.
        before = max(0, start - 1)
        features = vocabulary.encode(text, tokens[before : first + WINDOW + CONTEXT])
        piece = score(features[start - before :])
        emissions[first : first + WINDOW] = piece[first - start : first - start + WINDOW]
    return emissions
