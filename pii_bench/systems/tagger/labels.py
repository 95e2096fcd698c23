"""Spans as one BIO label per token, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pii_bench.scorer.locate import DetectedSpan
from pii_bench.taxonomy import PiiType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pii_bench.datasets.sample import Sample
    from pii_bench.scorer.tokens import Token

OUTSIDE: Final = 0
LABELS: Final = ("O", *(f"{place}-{pii_type}" for pii_type in PiiType for place in "BI"))
"""O, then B and I of each of the seven types: the index is what networks and files hold."""

_TYPES: Final = tuple(PiiType)

# Never at the edge of an annotated span, unlike `$`, `@`, `%`, `+` and `.`.
_TRIMMED: Final = frozenset(",;:!?…“”„«»—–")


def begin(pii_type: PiiType) -> int:
    """The label of a span's first token."""
    return 1 + 2 * _TYPES.index(pii_type)


def may_follow(before: int, label: int) -> bool:
    """Whether a label may stand behind another: I only behind B or I of its type.

    Args:
        before: the label to the left, `OUTSIDE` at the start of a text.
        label: the label that follows.
    """
    inside = label != OUTSIDE and label % 2 == 0
    return not inside or before in {label - 1, label}


def gold_spans(sample: Sample) -> list[DetectedSpan]:
    """The annotated spans of a sample in order; of two that overlap only the first."""
    spans: list[DetectedSpan] = []
    for start, end, pii_type in sorted(
        (start, end, entity.type) for entity in sample.entities for start, end in entity.spans
    ):
        if not spans or start >= spans[-1].end:
            spans.append(DetectedSpan(start, end, PiiType(pii_type)))
    return spans


def labels_of(tokens: Sequence[Token], spans: Sequence[DetectedSpan]) -> list[int]:
    """One label per token; a token that a span touches belongs to it.

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
    """The spans that labels describe, without punctuation that ends no annotated span.

    An I that nothing of its type precedes begins a span, as conlleval reads it.

    Args:
        text: the tokens' text.
        tokens: of the text, in order.
        labels: one per token.
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
