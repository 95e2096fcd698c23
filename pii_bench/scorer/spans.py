"""Scores of spans by their place: each figure is a sum of counts over documents, divided once.

Labels are compared as they are. Spans of one side may overlap; repeats count once.

- *exact*: true only with the same start, end and label (CoNLL-2003, seqeval), per label and over
  all of them.
- *SemEval-2013 task 9.1* in the four schemas of the package nervaluate, to its counts: every
  predicted span, from left to right, takes the first free gold span that it overlaps, one that is
  right before all others. As there, an overlap counts from 1 % of the gold span.
- *tokens*: (token, label) pairs; a token is of a span that shares a character with it.
- *overlap*: labels ignored, the largest one-to-one matching of spans that share a character. So
  "58" is "58 years old", yet neither one span over a whole text nor a value in pieces wins.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import accumulate
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
_TAIL: Final = 0.025
_CHUNK: Final = 100


class _Span(NamedTuple):
    start: int
    end: int
    label: str


@dataclass(frozen=True, slots=True)
class SemEval:
    """Counts of one schema; a partial one is worth half.

    Attributes:
        correct: predicted spans that are right.
        incorrect: those that overlap a gold span and are wrong in what the schema asks.
        partial: likewise in the schema `partial`, which has no incorrect ones.
        missed: gold spans that no predicted span took.
        spurious: predicted spans that took none.
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
        """Precision, recall and F1; None where nothing was predicted and nothing was gold."""
        taken = self.correct + self.incorrect + self.partial
        predicted, gold = taken + self.spurious, taken + self.missed
        if not predicted and not gold:
            return None
        worth = self.correct + self.partial / 2
        return PRF.harmonic(worth / predicted if predicted else 0.0, worth / gold if gold else 0.0)


@dataclass(frozen=True, slots=True)
class SpanScore:
    """Counts of a document; the sum of several is that of all: `sum(scores, SpanScore())`.

    Attributes:
        labels: exact counts by label, of those in gold or predicted.
        strict: SemEval, right with the same start, end and label.
        exact: SemEval, right with the same start and end.
        partial: SemEval, right with the same start and end, half right with any overlap.
        type: SemEval, right with any overlap and the same label.
        overlap: spans matched one to one, labels ignored.
        tokens: (token, label) pairs; None where a text was not given.
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
        """The exact counts of all labels."""
        return sum(self.labels.values(), start=Counts())

    @property
    def micro(self) -> PRF | None:
        """Exact figures of all spans; None where nothing was predicted and nothing was gold."""
        return micro(self.labels.values())

    @property
    def macro(self) -> PRF | None:
        """The mean of the exact figures of the labels, each of the same weight; None likewise."""
        return macro([counts.prf for counts in self.labels.values()])


def score_spans(
    predicted: Iterable[RawSpan], gold: Iterable[RawSpan], text: str | None = None
) -> SpanScore:
    """Compare the predicted spans of a document with its gold spans.

    Args:
        predicted: (start, end, label) in code points, end exclusive, in any order.
        gold: likewise.
        text: of the document; None leaves the tokens out.

    Raises:
        PiiBenchError: a span is no (start, end, label), is empty, or ends behind the text.
    """
    ours = _spans(predicted, "predicted", text)
    theirs = _spans(gold, "gold", text)
    labels = sorted({span.label for span in (*ours, *theirs)})
    return SpanScore(
        labels={
            label: Counts.of(
                {span for span in ours if span.label == label},
                {span for span in theirs if span.label == label},
            )
            for label in labels
        },
        strict=_semeval(ours, theirs, lambda a, b: a == b),
        exact=_semeval(ours, theirs, lambda a, b: a[:2] == b[:2]),
        partial=_semeval(ours, theirs, lambda a, b: a[:2] == b[:2], half=True),
        type=_semeval(ours, theirs, lambda a, b: a.label == b.label),
        overlap=Counts(_overlapping(ours, theirs), len(ours), len(theirs)),
        tokens=None if text is None else _tokens(text, ours, theirs),
    )


def f1_interval(
    documents: Iterable[Counts], *, resamples: int = RESAMPLES, seed: int = SEED
) -> tuple[float, float] | None:
    """The 95 % percentile interval of the micro-averaged F1, by the bootstrap of documents.

    Documents of equal counts are interchangeable, so their number is drawn and not each of
    them: a million documents take as much memory as there are different counts.

    Args:
        documents: of each, one of its counts (`SpanScore.counts`, `overlap`, `tokens`).
        resamples: how often as many documents are drawn, with replacement.
        seed: of the draws.

    Returns:
        None for fewer than two documents, and where nothing was predicted or gold.
    """
    import numpy as np

    alike = Counter((each.matched, each.predicted + each.gold) for each in documents)
    number = alike.total()
    if number < 2 or not any(size for _, size in alike):
        return None
    kinds = sorted(alike)
    shares = np.array([alike[kind] for kind in kinds]) / number
    columns, random = np.array(kinds, np.float64), np.random.default_rng(seed)
    chunks = (min(_CHUNK, resamples - start) for start in range(0, resamples, _CHUNK))
    drawn = [random.multinomial(number, shares, size=chunk) @ columns for chunk in chunks]
    matched, whole = np.concatenate(drawn).T
    # A draw of empty documents alone: nothing to find and nothing found.
    figures = np.divide(2 * matched, whole, out=np.ones(resamples), where=whole > 0)
    low, high = np.quantile(figures, [_TAIL, 1 - _TAIL])
    return round(float(low), 12), round(float(high), 12)


def _spans(spans: Iterable[RawSpan], side: str, text: str | None) -> list[_Span]:
    found = set()
    for number, span in enumerate(spans):
        match span:
            case (int(start), int(end), str(label)) if 0 <= start < end:
                found.add(_Span(start, end, label))
            case _:
                raise PiiBenchError(
                    f"{side}[{number}] must be (start, end, label) with 0 <= start < end"
                )
        if text is not None and end > len(text):
            raise PiiBenchError(f"{side}[{number}] ends at {end}, the text at {len(text)}")
    return sorted(found)


def _semeval(
    predicted: Sequence[_Span],
    gold: Sequence[_Span],
    is_right: Callable[[_Span, _Span], bool],
    *,
    half: bool = False,
) -> SemEval:
    starts = [span.start for span in gold]
    furthest = [*accumulate((span.end for span in gold), max)]
    taken: set[int] = set()
    correct = wrong = 0
    for span in predicted:
        near = range(bisect_right(furthest, span.start), bisect_left(starts, span.end))
        free = [place for place in near if place not in taken and _overlaps(span, gold[place])]
        right = [place for place in free if is_right(span, gold[place])]
        correct += bool(right)
        wrong += bool(free) and not right
        # Of those that are right the closest.
        taken.update(sorted(right, key=lambda place: _apart(span, gold[place]))[:1] or free[:1])
    return SemEval(
        correct=correct,
        incorrect=0 if half else wrong,
        partial=wrong if half else 0,
        missed=len(gold) - len(taken),
        spurious=len(predicted) - correct - wrong,
    )


def _overlaps(span: _Span, gold: _Span) -> bool:
    shared = min(span.end, gold.end) - max(span.start, gold.start)
    return shared > 0 and 100 * shared >= gold.end - gold.start


def _apart(a: _Span, b: _Span) -> int:
    return abs(a.start - b.start) + abs(a.end - b.end)


def _overlapping(predicted: Sequence[_Span], gold: Sequence[_Span]) -> int:
    """How many pairs the largest matching has.

    At its end, every span takes the span of the other side that is open and ends first: what
    that one could still take is less than what any other could.
    """
    # At one place ends precede starts: spans that touch share nothing.
    events = sorted(
        (place, opens, span.end, side, number)
        for side, spans in enumerate((predicted, gold))
        for number, span in enumerate(spans)
        for place, opens in ((span.start, True), (span.end, False))
    )
    open_spans: tuple[list[tuple[int, int]], ...] = ([], [])
    done: tuple[set[int], ...] = (set(), set())
    pairs = 0
    for _, opens, end, side, number in events:
        if opens:
            heappush(open_spans[side], (end, number))
        elif number not in done[side]:
            done[side].add(number)
            others = open_spans[1 - side]
            while others and others[0][1] in done[1 - side]:
                heappop(others)
            if others:
                done[1 - side].add(heappop(others)[1])
                pairs += 1
    return pairs


def _tokens(text: str, predicted: Sequence[_Span], gold: Sequence[_Span]) -> Counts:
    tokens = tokenize(text)
    starts, ends = [token.start for token in tokens], [token.end for token in tokens]

    def labelled(spans: Sequence[_Span]) -> set[tuple[int, str]]:
        return {
            (number, span.label)
            for span in spans
            for number in range(bisect_right(ends, span.start), bisect_left(starts, span.end))
        }

    return Counts.of(labelled(predicted), labelled(gold))
