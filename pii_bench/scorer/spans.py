"""Scores of labelled spans. Each figure sums counts over documents and divides once.

Labels are compared as strings. Spans of one side may overlap; repeated spans count once.

- *exact*: equal start, end and label (CoNLL-2003, seqeval), per label and over all labels.
- *SemEval-2013 task 9.1* in four schemas, with the same counts as the package nervaluate: each
  predicted span, from left to right, takes the first free gold span that it overlaps, preferring
  one that is correct. An overlap must be at least 1 % of the gold span.
- *tokens*: (token, label) pairs; a token belongs to a span that shares a character with it.
- *overlap*: labels ignored, the largest one-to-one matching of overlapping spans. So "58" matches
  "58 years old", but one span over a whole text or a value in pieces gains nothing.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from pii_bench.errors import PiiBenchError
from pii_bench.scorer.measures import PRF, Counts, macro, micro
from pii_bench.scorer.text import tokenize

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    RawSpan: TypeAlias = tuple[int, int, str]
    """Start and end in code points, end exclusive, and label."""

RESAMPLES: Final = 4_000
SEED: Final = 250218545


class _Span(NamedTuple):
    start: int
    end: int
    label: str


@dataclass(frozen=True, slots=True)
class SemEval:
    """Counts of one SemEval schema; a partial match is worth half.

    `partial` counts predicted spans that overlap a gold span with other boundaries, only in the
    schema `partial`, where `incorrect` is 0. A missed gold span was taken by no predicted span; a
    spurious predicted span took no gold span.
    """

    correct: int = 0
    incorrect: int = 0
    partial: int = 0
    missed: int = 0
    spurious: int = 0

    def __add__(self, other: SemEval) -> SemEval:
        return SemEval(
            self.correct + other.correct,
            self.incorrect + other.incorrect,
            self.partial + other.partial,
            self.missed + other.missed,
            self.spurious + other.spurious,
        )

    @property
    def prf(self) -> PRF | None:
        """Precision, recall and F1; None if nothing was predicted and nothing was gold."""
        taken = self.correct + self.incorrect + self.partial
        predicted, gold = taken + self.spurious, taken + self.missed
        if not predicted and not gold:
            return None
        worth = self.correct + self.partial / 2
        return PRF.harmonic(worth / predicted if predicted else 0.0, worth / gold if gold else 0.0)


@dataclass(frozen=True, slots=True)
class SpanScore:
    """Counts of one document, or of several: `sum(scores, SpanScore())`.

    Attributes:
        labels: exact counts by label.
        strict: SemEval, correct with equal start, end and label.
        exact: SemEval, correct with equal start and end.
        partial: SemEval, correct with equal start and end, partial with any overlap.
        type: SemEval, correct with any overlap and an equal label.
        overlap: spans matched one to one, ignoring labels.
        tokens: (token, label) pairs; None if no text was given.
    """

    labels: Mapping[str, Counts] = field(default_factory=dict)
    strict: SemEval = SemEval()
    exact: SemEval = SemEval()
    partial: SemEval = SemEval()
    type: SemEval = SemEval()
    overlap: Counts = field(default_factory=Counts)
    tokens: Counts | None = field(default_factory=Counts)

    def __add__(self, other: SpanScore) -> SpanScore:
        labels = dict(self.labels)
        for label, counts in other.labels.items():
            labels[label] = labels.get(label, Counts()) + counts
        return SpanScore(
            labels,
            self.strict + other.strict,
            self.exact + other.exact,
            self.partial + other.partial,
            self.type + other.type,
            self.overlap + other.overlap,
            None if self.tokens is None or other.tokens is None else self.tokens + other.tokens,
        )

    @property
    def counts(self) -> Counts:
        """The exact counts over all labels."""
        return sum(self.labels.values(), start=Counts())

    @property
    def micro(self) -> PRF | None:
        """Exact figures over all spans; None if nothing was predicted and nothing was gold."""
        return micro(self.labels.values())

    @property
    def macro(self) -> PRF | None:
        """The mean of the exact figures of the labels; None if there are no labels."""
        return macro([counts.prf for counts in self.labels.values()])


def score_spans(
    predicted: Iterable[RawSpan], gold: Iterable[RawSpan], text: str | None = None
) -> SpanScore:
    """Compare the predicted spans of a document with its gold spans.

    Without the text of the document there are no token counts.

    Raises:
        PiiBenchError: a span is not a (start, end, label), is empty, or ends beyond the text.
    """
    predictions = _spans(predicted, "predicted", text)
    golds = _spans(gold, "gold", text)
    labels = sorted({span.label for span in (*predictions, *golds)})
    near = _overlapping(predictions, golds)
    exact = _semeval(predictions, golds, near, lambda a, b: a[:2] == b[:2])
    return SpanScore(
        labels={
            label: Counts.of(
                {span for span in predictions if span.label == label},
                {span for span in golds if span.label == label},
            )
            for label in labels
        },
        strict=_semeval(predictions, golds, near, lambda a, b: a == b),
        exact=exact,
        partial=replace(exact, incorrect=0, partial=exact.incorrect),
        type=_semeval(predictions, golds, near, lambda a, b: a.label == b.label),
        overlap=Counts(_largest_matching(near), len(predictions), len(golds)),
        tokens=None if text is None else _token_counts(text, predictions, golds),
    )


def f1_interval(documents: Iterable[Counts]) -> tuple[float, float] | None:
    """Return the 95 % bootstrap interval (percentile) of micro F1, resampling documents.

    `documents` are one of the counts of each (`SpanScore.counts`, `overlap`, `tokens`). None for
    fewer than two documents, or if nothing was predicted or gold.
    """
    import numpy as np

    frequencies = Counter((counts.matched, counts.predicted + counts.gold) for counts in documents)
    total = frequencies.total()
    if total < 2 or not any(size for _, size in frequencies):
        return None
    # Documents with equal counts are interchangeable: a resample is how often each was drawn.
    distinct = sorted(frequencies)
    shares = np.array([frequencies[counts] for counts in distinct]) / total
    drawn = np.random.default_rng(SEED).multinomial(total, shares, size=RESAMPLES)
    matched, size = (drawn @ np.array(distinct)).T
    # A resample of empty documents has F1 1.
    f1 = np.divide(2 * matched, size, out=np.ones(RESAMPLES), where=size > 0)
    low, high = np.quantile(f1, [0.025, 0.975])
    return round(float(low), 12), round(float(high), 12)


def _spans(spans: Iterable[RawSpan], side: str, text: str | None) -> list[_Span]:
    distinct: set[_Span] = set()
    for number, span in enumerate(spans):
        match span:
            case (int(start), int(end), str(label)) if 0 <= start < end:
                distinct.add(_Span(start, end, label))
            case _:
                raise PiiBenchError(
                    f"{side}[{number}] must be (start, end, label) with 0 <= start < end"
                )
        if text is not None and end > len(text):
            raise PiiBenchError(f"{side}[{number}] ends at {end}, the text at {len(text)}")
    return sorted(distinct)


def _overlapping(predicted: Sequence[_Span], gold: Sequence[_Span]) -> list[list[int]]:
    """Return for each predicted span the indices of the gold spans that share a character."""
    return [
        [i for i, other in enumerate(gold) if other.start < span.end and span.start < other.end]
        for span in predicted
    ]


def _semeval(
    predicted: Sequence[_Span],
    gold: Sequence[_Span],
    overlapping: Sequence[Sequence[int]],
    is_correct: Callable[[_Span, _Span], bool],
) -> SemEval:
    taken: set[int] = set()
    correct = incorrect = 0
    for span, near in zip(predicted, overlapping, strict=True):
        free = [i for i in near if i not in taken and _share_enough(span, gold[i])]
        right = [i for i in free if is_correct(span, gold[i])]
        if right:
            correct += 1
            taken.add(min(right, key=lambda i: _distance(span, gold[i])))
        elif free:
            incorrect += 1
            taken.add(free[0])
    return SemEval(
        correct=correct,
        incorrect=incorrect,
        missed=len(gold) - len(taken),
        spurious=len(predicted) - correct - incorrect,
    )


def _share_enough(span: _Span, gold: _Span) -> bool:
    shared = min(span.end, gold.end) - max(span.start, gold.start)
    return 100 * shared >= gold.end - gold.start


def _distance(a: _Span, b: _Span) -> int:
    return abs(a.start - b.start) + abs(a.end - b.end)


def _largest_matching(overlapping: Sequence[Sequence[int]]) -> int:
    """Return the size of the largest one-to-one matching of overlapping spans."""
    import numpy as np
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_bipartite_matching  # slow to import

    pairs = [(i, j) for i, near in enumerate(overlapping) for j in near]
    if not pairs:
        return 0
    rows, columns = np.array(pairs).T
    graph = csr_array((np.ones(len(pairs)), (rows, columns)))
    return int((maximum_bipartite_matching(graph) >= 0).sum())


def _token_counts(text: str, predicted: Sequence[_Span], gold: Sequence[_Span]) -> Counts:
    tokens = tokenize(text)
    starts, ends = [token.start for token in tokens], [token.end for token in tokens]

    def labelled(spans: Sequence[_Span]) -> set[tuple[int, str]]:
        return {
            (number, span.label)
            for span in spans
            for number in range(bisect_right(ends, span.start), bisect_left(starts, span.end))
        }

    return Counts.of(labelled(predicted), labelled(gold))
