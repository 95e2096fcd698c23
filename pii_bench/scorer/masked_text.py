"""Scores of the text that is left: masked, or written anew.

Judged are the characters that were really masked, not the texts that a system named. The units are
the distinct gold texts of a sample, each with all its spans; one is needed if any entity with that
text is that of a related entity, for no masker can hide and show the same words.

A rewritten text has no masked spans, so each gold text is looked for in it (`Strictness.RESTATED`).
A text is protected if the rewriting tells nothing of it, retained if it tells it in full.
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
            1 where there are none.
        retention: share of the needed texts of which at least one occurrence is readable in full;
            1 where there are none.
        collateral: share of the characters outside all gold spans, white space aside, that are
            masked; None where there are none, and for a failure, which leaves no text.
    """

    protection: float
    retention: float
    collateral: float | None


@dataclass(frozen=True, slots=True)
class GoldText:
    """A distinct text of E, normalised, and its sorted occurrences (none in some foreign data).

    It is needed if any entity with that text is a related one.
    """

    text: str
    needed: bool
    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Judgement:
    """What is left of the gold texts, in their order, and of all other characters.

    Attributes:
        hidden: of each text the occurrences without a readable character.
        readable: of each text the occurrences that are readable in full.
        other: characters that are neither white space nor part of a gold text.
        other_masked: those of them that are masked.
    """

    hidden: tuple[int, ...]
    readable: tuple[int, ...]
    other: int
    other_masked: int


class GoldTexts:
    """The gold texts of one description, against which any masking of it is judged.

    Entities of E are (text, spans); those of one text are one unit, blank texts are dropped.

    Raises:
        PiiBenchError: a span outside of the description, or `related` is one string.
    """

    def __init__(
        self,
        description: str,
        entities: Iterable[tuple[str, Iterable[Span]]],
        related: Iterable[str],
    ) -> None:
        needed = text_set(related)
        spans: defaultdict[str, set[Span]] = defaultdict(set)
        for text, places in entities:
            spans[normalise(text)].update((start, end) for start, end in places)
        spans.pop("", None)
        self.texts: tuple[GoldText, ...] = tuple(
            GoldText(text, text in needed, tuple(sorted(found))) for text, found in spans.items()
        )
        self._blank = bytes(map(str.isspace, description))
        gold = self._painted(span for each in self.texts for span in each.spans)
        blank = self._blank
        self._other = [at for at in range(len(blank)) if not (blank[at] or gold[at])]

    def judge(self, masked: Iterable[Span]) -> Judgement:
        """Judge one masking, of spans that may overlap; PiiBenchError for one outside."""
        painted = self._painted(masked)
        marks = [
            [
                [painted[place] for place in range(*span) if not self._blank[place]]
                for span in each.spans
            ]
            for each in self.texts
        ]
        return Judgement(
            hidden=tuple(sum(all(span) for span in spans) for spans in marks),
            readable=tuple(sum(not any(span) for span in spans) for spans in marks),
            other=len(self._other),
            other_masked=sum(painted[place] for place in self._other),
        )

    def _painted(self, spans: Iterable[Span]) -> bytearray:
        """One byte per character: 1 inside of the spans."""
        length = len(self._blank)
        painted = bytearray(length)
        for start, end in spans:
            if not 0 <= start <= end <= length:
                allowed = f"0 <= start <= end <= {length}"
                raise PiiBenchError(f"a span came from {start} to {end}; allowed: {allowed}")
            painted[start:end] = b"\1" * (end - start)
        return painted


def score_masked_text(
    description: str,
    masked_spans: Iterable[Span] | None,
    gold_entities: Iterable[tuple[str, Iterable[Span]]],
    gold_related: Iterable[str],
    *,
    weights: Mapping[str, float] | None = None,
) -> MaskedTextScore:
    """Score what is left of a description in which spans are masked.

    A gold text without any span occurs nowhere, so nothing can be said of it: it is left out.

    Args:
        description: the text.
        masked_spans: what was really masked; they may overlap. None for a sample without a
            masked text: protection and retention are 0, also where there is nothing to protect.
        gold_entities: (text, spans) of E; every occurrence of a text is a span.
        gold_related: texts of the related entities.
        weights: gold text to its weight in protection, such as the tier of its sensitivity;
            1 where it has none. None to weigh all alike.

    Raises:
        PiiBenchError: a span outside of the description, a weight below 0, or `gold_related` is
            one string.
    """
    gold = GoldTexts(description, gold_entities, gold_related)
    return score_judgement(
        gold, None if masked_spans is None else gold.judge(masked_spans), weights
    )


def score_judgement(
    gold: GoldTexts, judgement: Judgement | None, weights: Mapping[str, float] | None = None
) -> MaskedTextScore:
    """The scores of a judgement by these gold texts; see `score_masked_text`."""
    if judgement is None:
        return MaskedTextScore(0.0, 0.0, None)
    weighed = {normalise(text): weight for text, weight in (weights or {}).items()}
    if any(weight < 0 for weight in weighed.values()):
        raise PiiBenchError("a weight is below 0; allowed: 0 and more")
    outcomes = zip(gold.texts, judgement.hidden, judgement.readable, strict=True)
    unneeded: list[tuple[float, bool]] = []
    needed: list[tuple[float, bool]] = []
    for each, hidden, readable in outcomes:
        if not each.spans:
            continue
        if each.needed:
            needed.append((1.0, readable > 0))
        else:
            unneeded.append((weighed.get(each.text, 1.0), hidden == len(each.spans)))
    collateral = judgement.other_masked / judgement.other if judgement.other else None
    return MaskedTextScore(_share(unneeded), _share(needed), collateral)


def masking_headline(scores: Sequence[MaskedTextScore]) -> float | None:
    """H = 2PR / (P + R) of the mean protection P and the mean retention R; None of no samples."""
    if not scores:
        return None
    protection = fsum(score.protection for score in scores) / len(scores)
    retention = fsum(score.retention for score in scores) / len(scores)
    return harmonic_mean(protection, retention)


def _share(outcomes: Sequence[tuple[float, bool]]) -> float:
    whole = fsum(weight for weight, _ in outcomes)
    return fsum(weight for weight, good in outcomes if good) / whole if whole else 1.0


LEAKS: Final = "restated-1"
"""Version of what counts as told, for signatures."""


class Trace(StrEnum):
    """How much of a gold text a rewriting tells."""

    READABLE = "readable"
    """All, as it was written (`Strictness.READABLE`)."""

    RESTATED = "restated"
    """All, in another writing (`Strictness.RESTATED`)."""

    PART = "part"
    """A word or a number of it."""

    GONE = "gone"
    """Nothing."""

    @property
    def whole(self) -> bool:
        """Whether it tells all."""
        return self in {Trace.READABLE, Trace.RESTATED}


@dataclass(frozen=True, slots=True)
class Told:
    """How much a rewriting tells of one gold text, and where (code points of the rewriting)."""

    text: GoldText = field(repr=False)
    trace: Trace
    spans: tuple[Span, ...] = ()

    @property
    def leaks(self) -> bool:
        """Whether something is told of a text that is not needed."""
        return not self.text.needed and self.trace is not Trace.GONE


_WORD: Final = re.compile(r"[^\W_]+")
_ORDINARY: Final = frozenset(
    (
        *("the", "and", "for", "from", "with", "near", "street", "road", "avenue"),
        *("year", "years", "month", "months", "week", "weeks", "day", "days"),
        *("hour", "hours", "minute", "minutes"),
        *("dollars", "euros", "pounds", "percent", "cents"),
    )
)
"""Words that tell nothing of a value by themselves."""


def tell(description: str, rewritten: str, gold: GoldTexts, query: str = "") -> tuple[Told, ...]:
    """Look for each gold text in a rewriting; those without a span in the description first drop.

    - A text that is not needed does not leak where it is inside of a longer one that is: the age 32
      is not told by "32 Elm Street".
    - A part of it leaks if it is a number or a word of three letters or more (in small letters: of
      five or more), which neither the query nor the description outside of such texts has. Words
      such as "years" or "street" do not.
    """
    told = _Words(rewritten)
    occurring = [each for each in gold.texts if each.spans]
    needed = [each for each in occurring if each.needed]
    kept = [span for each in needed for span in told.locator.spans(each.text, Strictness.RESTATED)]
    hidden = [span for each in occurring if not each.needed for span in each.spans]
    open_text = [_blanked(description, hidden), query, *(each.text for each in needed)]
    elsewhere = _Words("\n".join(open_text))
    return tuple(_told(each, told, () if each.needed else kept, elsewhere) for each in occurring)


def judge(gold: GoldTexts, told: Sequence[Told]) -> Judgement:
    """What `tell` found, as the judgement of a masked text: of each text all or nothing."""
    by_text = {each.text.text: each.trace for each in told}
    traces = [by_text.get(each.text) for each in gold.texts]
    return Judgement(
        hidden=tuple(
            len(each.spans) * (trace is Trace.GONE)
            for each, trace in zip(gold.texts, traces, strict=True)
        ),
        readable=tuple(int(trace is not None and trace.whole) for trace in traces),
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
    """Score a text that was written anew.

    Args:
        description: as it was.
        rewritten: None for a sample without one: protection and retention are 0.
        gold_entities: as for `score_masked_text`, and so the others.
        gold_related: texts of the related entities.
        query: words in it are no part of a value that leaks.
        weights: gold text to its weight in protection.

    Raises:
        PiiBenchError: as `score_masked_text`.
    """
    gold = GoldTexts(description, gold_entities, gold_related)
    if rewritten is None:
        return score_judgement(gold, None, weights)
    return score_judgement(gold, judge(gold, tell(description, rewritten, gold, query)), weights)


def _told(text: GoldText, told: _Words, kept: Sequence[Span], elsewhere: _Words) -> Told:
    if spans := _outside(told.locator.spans(text.text, Strictness.RESTATED), kept):
        readable = overlap(spans, told.locator.spans(text.text))
        return Told(text, Trace.READABLE if readable else Trace.RESTATED, spans)
    parts = {
        span
        for match in _WORD.finditer(text.text)
        if _tells(match[0]) and not elsewhere.spans(match[0])
        for span in _outside(told.spans(match[0]), kept)
    }
    return Told(text, Trace.PART, tuple(sorted(parts))) if parts else Told(text, Trace.GONE)


class _Words:
    """A text and its words."""

    def __init__(self, text: str) -> None:
        self.locator = Locator(text)
        self._spans: defaultdict[str, list[Span]] = defaultdict(list)
        for match in _WORD.finditer(text):
            self._spans[_key(match[0])].append(match.span())

    def spans(self, word: str) -> Sequence[Span]:
        """Where a word is, in the case in which it is another ("Will" and "will")."""
        return self._spans.get(_key(word), ())


def _key(word: str) -> str:
    plain = unmarked(word)
    return plain if len(plain) <= SHORT else plain.casefold()


def _tells(word: str) -> bool:
    if word.casefold() in _ORDINARY:
        return False
    return len(word) > (SHORT if word.islower() and word.isalpha() else VERY_SHORT)


def _outside(spans: Iterable[Span], kept: Sequence[Span]) -> tuple[Span, ...]:
    """The spans that are in no longer one that is kept."""
    return tuple(
        (start, end)
        for start, end in spans
        if not any(a <= start and end <= b and b - a > end - start for a, b in kept)
    )


def _blanked(text: str, spans: Iterable[Span]) -> str:
    """A text with spans left blank."""
    characters = [*text]
    for start, end in spans:
        characters[start:end] = "\n" * (end - start)
    return "".join(characters)
