"""Scores of a text that was written anew: which gold texts it still tells, and how.

A rewritten text has no masked spans, so each gold text is looked for in it (`Strictness.RESTATED`).
Protection, retention and H are those of a masked text (`masked_text`): a text is protected if the
rewriting tells nothing of it, retained if it tells it in full. Collateral has no meaning here.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from pii_bench.scorer.locate import SHORT, VERY_SHORT, Locator, Strictness, overlap
from pii_bench.scorer.masked_text import GoldTexts, Judgement, score_judgement
from pii_bench.scorer.writings import unmarked

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pii_bench.scorer.locate import Span
    from pii_bench.scorer.masked_text import GoldText, MaskedTextScore


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
    """What a rewriting tells of one gold text.

    Attributes:
        text: the gold text.
        trace: how much of it is told.
        spans: where, in code points of the rewriting.
    """

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

    Args:
        description: as it was.
        rewritten: the text that was written of it.
        gold: the gold texts of the description.
        query: what is asked about it.
    """
    told = _Words(rewritten)
    occurring = [each for each in gold.texts if each.spans]
    needed = [each for each in occurring if each.needed]
    kept = [span for each in needed for span in told.locator.spans(each.text, Strictness.RESTATED)]
    hidden = [span for each in occurring if not each.needed for span in each.spans]
    open_text = [_without(description, hidden), query, *(each.text for each in needed)]
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
        rewritten: the new text. None for a sample without one: protection and retention are 0.
        gold_entities: (text, spans) of E in the description.
        gold_related: texts of the related entities.
        query: what is asked; what it says itself is no part of a value that leaks.
        weights: gold text to its weight in protection; None to weigh all alike.

    Raises:
        PiiBenchError: a span outside of the description, a weight below 0, or `gold_related` is
            one string.
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


def _without(text: str, spans: Iterable[Span]) -> str:
    """A text with spans left blank."""
    characters = [*text]
    for start, end in spans:
        characters[start:end] = "\n" * (end - start)
    return "".join(characters)
