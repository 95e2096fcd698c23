"""Scores of a masked or rewritten text.

They judge the characters that were really masked, not the texts that a system named. The units
are the distinct gold texts of a sample, each with all its spans. A gold text is needed if any
related entity has this text, because masking cannot hide and show the same words.

A rewritten text has no masked spans, so the gold texts are searched in it
(`Strictness.RESTATED`). A gold text is protected if no part of it is found, and retained if it
is found in full.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from enum import StrEnum
from math import fsum
from typing import TYPE_CHECKING, Final

from pii_bench.errors import PiiBenchError
from pii_bench.scorer.locate import SHORT, VERY_SHORT, Locator, Strictness, overlap
from pii_bench.scorer.measures import harmonic_mean
from pii_bench.scorer.text import normalise, text_set
from pii_bench.scorer.writings import unmarked

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pii_bench.scorer.locate import Span


@dataclass(frozen=True, slots=True)
class MaskedTextScore:
    """Scores of one sample, each from 0 to 1.

    Attributes:
        protection: share of the unneeded texts of which no occurrence has a readable character;
            1 if there are none.
        retention: share of the needed texts of which at least one occurrence is readable in
            full; 1 if there are none.
        collateral: share of the characters outside all gold spans that are masked, ignoring
            white space; None if there are none, and for a failure.
    """

    protection: float
    retention: float
    collateral: float | None


@dataclass(frozen=True, slots=True)
class GoldText:
    """A distinct gold text, normalised, with its sorted spans, one or more."""

    text: str
    needed: bool
    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a masking leaves readable.

    Attributes:
        hidden: number of occurrences of each gold text without a readable character.
        readable: number of occurrences of each gold text that are readable in full.
        other: number of characters that are neither white space nor part of a gold text.
        other_masked: number of these that are masked.
    """

    hidden: tuple[int, ...]
    readable: tuple[int, ...]
    other: int
    other_masked: int


class GoldTexts:
    """The gold texts of one description, against which maskings of it are judged.

    `entities` are (text, spans) of the gold entities, and `related` are texts. Entities with one
    text are one unit; blank texts, and those without a span, are dropped.

    Raises:
        PiiBenchError: a span is outside the description, or `related` is one string.
    """

    def __init__(
        self,
        description: str,
        entities: Iterable[tuple[str, Iterable[Span]]],
        related: Iterable[str],
    ) -> None:
        needed = text_set(related)
        spans_by_text: defaultdict[str, set[Span]] = defaultdict(set)
        for text, spans in entities:
            spans_by_text[normalise(text)].update((start, end) for start, end in spans)
        spans_by_text.pop("", None)
        self.texts: tuple[GoldText, ...] = tuple(
            GoldText(text, text in needed, tuple(sorted(spans)))
            for text, spans in spans_by_text.items()
            if spans
        )
        self._length = len(description)
        self._visible = {i for i, char in enumerate(description) if not char.isspace()}
        gold = self._characters(span for text in self.texts for span in text.spans)
        self._other = self._visible - gold

    def judge(self, masked: Iterable[Span]) -> Judgement:
        """Judge one masking, given as spans; raises PiiBenchError for a span outside."""
        masked_characters = self._characters(masked)
        hidden: list[int] = []
        readable: list[int] = []
        for text in self.texts:
            occurrences = [self._characters([span]) for span in text.spans]
            hidden.append(sum(each <= masked_characters for each in occurrences))
            readable.append(sum(each.isdisjoint(masked_characters) for each in occurrences))
        return Judgement(
            hidden=tuple(hidden),
            readable=tuple(readable),
            other=len(self._other),
            other_masked=len(self._other & masked_characters),
        )

    def _characters(self, spans: Iterable[Span]) -> set[int]:
        """Return the offsets inside the spans, without those of white space."""
        offsets: set[int] = set()
        for start, end in spans:
            if not 0 <= start <= end <= self._length:
                allowed = f"0 <= start <= end <= {self._length}"
                raise PiiBenchError(f"a span came from {start} to {end}; allowed: {allowed}")
            offsets.update(range(start, end))
        return offsets & self._visible


def score_masked_text(
    description: str,
    masked_spans: Iterable[Span] | None,
    gold_entities: Iterable[tuple[str, Iterable[Span]]],
    gold_related: Iterable[str],
    *,
    weights: Mapping[str, float] | None = None,
) -> MaskedTextScore:
    """Score a description in which spans are masked.

    Args:
        description: the text.
        masked_spans: what was really masked; spans may overlap. None for a sample without a
            masked text: protection and retention are 0, even if there is nothing to protect.
        gold_entities: (text, spans) of the gold entities, with every occurrence of a text. Texts
            without a span are left out.
        gold_related: texts of the related entities.
        weights: weight of a gold text in protection, such as the tier of its sensitivity, else 1.

    Raises:
        PiiBenchError: a span is outside the description, a weight is below 0, or `gold_related`
            is one string.
    """
    gold = GoldTexts(description, gold_entities, gold_related)
    return score_judgement(
        gold, None if masked_spans is None else gold.judge(masked_spans), weights
    )


def score_judgement(
    gold: GoldTexts, judgement: Judgement | None, weights: Mapping[str, float] | None = None
) -> MaskedTextScore:
    """Return the scores of a judgement; see `score_masked_text`."""
    if judgement is None:
        return MaskedTextScore(0.0, 0.0, None)
    by_text = {normalise(text): weight for text, weight in (weights or {}).items()}
    if any(weight < 0 for weight in by_text.values()):
        raise PiiBenchError("a weight is below 0; allowed: 0 and more")
    unneeded: list[tuple[float, bool]] = []
    needed: list[tuple[float, bool]] = []
    for text, hidden, readable in zip(
        gold.texts, judgement.hidden, judgement.readable, strict=True
    ):
        if text.needed:
            needed.append((1.0, readable > 0))
        else:
            unneeded.append((by_text.get(text.text, 1.0), hidden == len(text.spans)))
    collateral = judgement.other_masked / judgement.other if judgement.other else None
    return MaskedTextScore(_weighted_share(unneeded), _weighted_share(needed), collateral)


def masking_headline(scores: Sequence[MaskedTextScore]) -> float | None:
    """Return H = 2PR / (P + R) of mean protection P and mean retention R; None for no samples."""
    if not scores:
        return None
    protection = fsum(score.protection for score in scores) / len(scores)
    retention = fsum(score.retention for score in scores) / len(scores)
    return harmonic_mean(protection, retention)


def _weighted_share(outcomes: Sequence[tuple[float, bool]]) -> float:
    """Return the weight of the good outcomes over the weight of all; 1 if that is 0."""
    total = fsum(weight for weight, _ in outcomes)
    return fsum(weight for weight, good in outcomes if good) / total if total else 1.0


LEAKS: Final = "restated-2"
"""Version of the rules by which leaks are found, for signatures."""


class Trace(StrEnum):
    """How much of a gold text a rewriting contains."""

    READABLE = "readable"
    """All of it, as it was written (`Strictness.READABLE`)."""

    RESTATED = "restated"
    """All of it, written in another way (`Strictness.RESTATED`)."""

    PART = "part"
    """A word or number of it."""

    GONE = "gone"
    """Nothing."""

    @property
    def whole(self) -> bool:
        """Whether the rewriting contains all of the text."""
        return self in {Trace.READABLE, Trace.RESTATED}


@dataclass(frozen=True, slots=True)
class TextTrace:
    """How much of one gold text a rewriting contains, and where in the rewriting."""

    text: GoldText = field(repr=False)
    trace: Trace
    spans: tuple[Span, ...] = ()

    @property
    def leaks(self) -> bool:
        """Whether the rewriting contains anything of a text that is not needed."""
        return not self.text.needed and self.trace is not Trace.GONE


_WORD: Final = re.compile(r"[^\W_]+")
_COMMON_WORDS: Final = frozenset(
    (
        *("the", "and", "for", "from", "with", "near", "street", "road", "avenue"),
        *("year", "years", "month", "months", "week", "weeks", "day", "days"),
        *("hour", "hours", "minute", "minutes"),
        *("dollars", "euros", "pounds", "percent", "cents"),
    )
)
"""Words that reveal nothing of a value by themselves."""


def find_traces(
    description: str, rewritten: str, gold: GoldTexts, query: str = ""
) -> tuple[TextTrace, ...]:
    """Search a rewriting for each gold text.

    - An unneeded text inside a longer needed one is not a leak: "32 Elm Street" does not reveal
      the age 32.
    - A part of an unneeded text is a leak if it is a number or word of three letters or more
      (five or more in lower case) that occurs neither in the query nor in the rest of the
      description. Common words such as "years" or "street" are no leak.
    """
    rewriting = _Words(rewritten)
    kept: list[Span] = []
    others = list(description)
    open_texts = [query]
    for text in gold.texts:
        if text.needed:
            kept += rewriting.locator.spans(text.text, Strictness.RESTATED)
            open_texts.append(text.text)
        else:
            for start, end in text.spans:
                others[start:end] = "\n" * (end - start)
    open_words = _Words("\n".join([*open_texts, "".join(others)]))
    return tuple(
        _find_trace(text, rewriting, () if text.needed else kept, open_words) for text in gold.texts
    )


def judge_rewriting(traces: Sequence[TextTrace]) -> Judgement:
    """Convert traces to a judgement: of each text all occurrences are hidden or readable."""
    return Judgement(
        hidden=tuple(len(t.text.spans) if t.trace is Trace.GONE else 0 for t in traces),
        readable=tuple(int(t.trace.whole) for t in traces),
        other=0,
        other_masked=0,
    )


def score_rewritten_text(
    description: str,
    rewritten: str | None,
    gold_entities: Iterable[tuple[str, Iterable[Span]]],
    gold_related: Iterable[str],
    *,
    query: str = "",
    weights: Mapping[str, float] | None = None,
) -> MaskedTextScore:
    """Score a rewritten description; the arguments are as for `score_masked_text`.

    Words of the query do not count as leaked parts of a value. `rewritten` is None for a sample
    without a rewriting: protection and retention are 0.
    """
    gold = GoldTexts(description, gold_entities, gold_related)
    if rewritten is None:
        return score_judgement(gold, None, weights)
    traces = find_traces(description, rewritten, gold, query)
    return score_judgement(gold, judge_rewriting(traces), weights)


def _find_trace(
    text: GoldText, rewriting: _Words, kept: Sequence[Span], open_words: _Words
) -> TextTrace:
    locator = rewriting.locator
    if spans := _outside(locator.spans(text.text, Strictness.RESTATED), kept):
        is_readable = overlap(spans, locator.spans(text.text))
        return TextTrace(text, Trace.READABLE if is_readable else Trace.RESTATED, spans)
    parts: set[Span] = set()
    for match in _WORD.finditer(text.text):
        word = match[0]
        if _is_revealing(word) and not open_words.spans(word):
            parts.update(_outside(rewriting.spans(word), kept))
    return TextTrace(text, Trace.PART if parts else Trace.GONE, tuple(sorted(parts)))


class _Words:
    """A text with an index of its words."""

    def __init__(self, text: str) -> None:
        self.locator = Locator(text)
        self._spans: defaultdict[str, list[Span]] = defaultdict(list)
        for match in _WORD.finditer(text):
            self._spans[_word_key(match[0])].append(match.span())

    def spans(self, word: str) -> Sequence[Span]:
        """Return the spans of a word; case counts only in short words ("Will" and "will")."""
        return self._spans.get(_word_key(word), ())


def _word_key(word: str) -> str:
    plain = unmarked(word)
    return plain if len(plain) <= SHORT else plain.casefold()


def _is_revealing(word: str) -> bool:
    if word.casefold() in _COMMON_WORDS:
        return False
    return len(word) > (SHORT if word.islower() and word.isalpha() else VERY_SHORT)


def _outside(spans: Iterable[Span], kept: Sequence[Span]) -> tuple[Span, ...]:
    """Return the spans that are not inside a longer kept one."""
    return tuple(
        (start, end)
        for start, end in spans
        if not any(a <= start and end <= b and b - a > end - start for a, b in kept)
    )
