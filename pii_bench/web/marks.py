"""What an annotator says of a sample: marks in a text, and the choice of what a query needs.

Answers come from a browser, so everything in them is checked here. Places are code points, end
exclusive, and always those of whole tokens.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from pii_bench.errors import PiiBenchError
from pii_bench.masking.masked import name_of
from pii_bench.scorer.locate import Strictness, locator_of
from pii_bench.scorer.text import tokenize
from pii_bench.taxonomy import TYPE_OF_CATEGORY, PiiType

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pii_bench.datasets.sample import Sample
    from pii_bench.scorer.locate import Span

HAND: Final = "hand"
"""The origin of a mark that a person made; else it is the name of a system."""

LONGEST_REMARK: Final = 2000
MOST_MARKS: Final = 5000

PERSONS: Final = tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZ")


class AnswerError(PiiBenchError):
    """An answer that is not of its form."""


@dataclass(frozen=True, slots=True, order=True)
class Mark:
    """A piece of PII that somebody marked. As a dictionary it is what `parse_marks` reads.

    Attributes:
        start: its first code point; `end` is the one behind its last.
        persons: whose it is, letters in order; several where people share it.
        category: None as long as it is open.
        origin: `HAND`, or the system that suggested it.
    """

    start: int
    end: int
    persons: tuple[str, ...]
    type: str
    category: str | None = None
    origin: str = HAND

    @property
    def span(self) -> Span:
        """Where it is."""
        return self.start, self.end


@dataclass(frozen=True, slots=True)
class Item:
    """An entity that stage 2 asks about.

    Attributes:
        person: whose it is.
        spans: all its places.
    """

    person: str
    text: str
    type: str
    category: str | None
    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """An answer of stage 2.

    Attributes:
        needed: numbers of the items that the query needs, in order.
        persons: number of an item to the person that it should have had.
        necessary: whether each chosen item was confirmed to be needed.
        sufficient: whether the chosen items were confirmed to be enough.
        ambiguous: whether reasonable people could choose otherwise.
    """

    needed: tuple[int, ...] = ()
    persons: Mapping[int, str] = field(default_factory=dict)
    necessary: bool = False
    sufficient: bool = False
    ambiguous: bool = False
    remark: str = ""


@lru_cache(maxsize=8)
def token_places(text: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Where the tokens of a text begin, and where they end; texts come several times in a row."""
    tokens = tokenize(text)
    return tuple(token.start for token in tokens), tuple(token.end for token in tokens)


def snap(text: str, start: int, end: int) -> Span | None:
    """The smallest run of whole tokens that holds a selection; None where it holds none."""
    starts, ends = token_places(text)
    first, last = bisect_right(ends, start), bisect_left(starts, end)
    return (starts[first], ends[last - 1]) if first < last else None


def occurrences(text: str, span: Span) -> tuple[Span, ...]:
    """All places of the text of a span, as words of their own, that span among them."""
    found = locator_of(text).spans(text[slice(*span)], Strictness.VERBATIM)
    return tuple(sorted({span, *(each for each in found if snap(text, *each) == each)}))


def parse_marks(text: str, answer: Mapping[str, Any]) -> tuple[Mark, ...]:
    """The marks of an answer to stage 1, in order of the text.

    Raises:
        AnswerError: they are not of their form, or overlap.
    """
    values = answer.get("marks")
    if not isinstance(values, list) or len(values) > MOST_MARKS:
        raise AnswerError(f"an answer has a list of at most {MOST_MARKS} marks")
    marks = sorted(_mark(text, value) for value in values)
    for one, other in pairwise(marks):
        if other.start < one.end:
            raise AnswerError(f"marks overlap at {other.start}")
    return tuple(marks)


def _mark(text: str, value: object) -> Mark:
    match value:
        case {
            "start": int(start),
            "end": int(end),
            "persons": [*persons],
            "type": str(pii_type),
            **more,
        } if 0 <= start < end <= len(text):
            pass
        case _:
            raise AnswerError("a mark has start, end, persons and type, inside of the text")
    category, origin = more.get("category"), more.get("origin", HAND)
    if pii_type not in PiiType.__members__:
        raise AnswerError(f"a mark has one of the types {', '.join(PiiType)}")
    if category is not None and not isinstance(category, str):
        raise AnswerError("a category is a name")
    if category is not None and TYPE_OF_CATEGORY.get(category) != pii_type:
        raise AnswerError(f"no category of {pii_type}")
    if not persons or not set(persons) <= set(PERSONS):
        raise AnswerError("persons are letters, A to Z, and at least one")
    if not isinstance(origin, str) or len(origin) > 200:
        raise AnswerError("an origin is a name")
    if snap(text, start, end) != (start, end):
        raise AnswerError(f"a mark from {start} to {end} does not hold whole tokens")
    return Mark(start, end, tuple(sorted(set(persons))), pii_type, category, origin)


def parse_choice(items: Sequence[Item], answer: Mapping[str, Any]) -> Choice:
    """An answer to stage 2.

    Raises:
        AnswerError: it is not of its form.
    """
    needed, persons = answer.get("needed"), answer.get("persons") or {}
    numbers = range(len(items))
    if not isinstance(needed, list) or not all(type(n) is int and n in numbers for n in needed):
        raise AnswerError(f"'needed' lists numbers of items, 0 to {len(items) - 1}")
    if not isinstance(persons, dict) or not all(
        str(key).isdecimal() and int(key) in numbers and value in PERSONS
        for key, value in persons.items()
    ):
        raise AnswerError("'persons' maps numbers of items to letters")
    flags = {key: answer.get(key, False) for key in ("necessary", "sufficient", "ambiguous")}
    if not all(type(flag) is bool for flag in flags.values()):
        raise AnswerError("necessary, sufficient and ambiguous are true or false")
    corrected = {int(key): value for key, value in persons.items()}
    return Choice(
        tuple(sorted(set(needed))),
        {number: p for number, p in sorted(corrected.items()) if p != items[number].person},
        remark=parse_remark(answer),
        **flags,
    )


def parse_remark(answer: Mapping[str, Any]) -> str:
    """The remark of any answer.

    Raises:
        AnswerError: it is no text, or too long.
    """
    remark = answer.get("remark", "")
    if not isinstance(remark, str) or len(remark) > LONGEST_REMARK:
        raise AnswerError(f"a remark has at most {LONGEST_REMARK:,} characters")
    return remark


def items_of_marks(text: str, marks: Iterable[Mark]) -> tuple[Item, ...]:
    """The entities that marks make: of one person, text, type and category, with all places."""
    spans: dict[tuple[str, str, str, str | None], list[Span]] = {}
    for mark in sorted(marks):
        for person in mark.persons:
            key = person, text[slice(*mark.span)], mark.type, mark.category
            spans.setdefault(key, []).append(mark.span)
    items = (Item(*key, spans=tuple(own)) for key, own in spans.items())
    return tuple(sorted(items, key=lambda item: (item.spans[0], item.person)))


def items_of_sample(sample: Sample) -> tuple[Item, ...]:
    """The gold entities of a sample, in order of the text; those that are nowhere come last."""
    locator = locator_of(sample.description)
    items = [
        Item(
            letter,
            entity.text,
            entity.type,
            entity.category,
            entity.spans or locator.spans(entity.text),
        )
        for letter, subject in zip(PERSONS, sample.subjects, strict=False)
        for entity in subject.entities
    ]
    nowhere = len(sample.description)
    return tuple(sorted(items, key=lambda i: (i.spans[0] if i.spans else (nowhere, 0), i.person)))


def marks_of_subjects(
    text: str, subjects: Iterable[Iterable[tuple[str, str]]], origin: str
) -> tuple[Mark, ...]:
    """Marks of what a system found: (text, type) of each subject, at all places in the text.

    Longer values go first; what overlaps them, has no type of ours or is nowhere is left out. A
    mark has a category where the format of its text tells one.
    """
    persons: dict[tuple[str, str], set[str]] = {}
    for letter, subject in zip(PERSONS, subjects, strict=False):
        for value, pii_type in subject:
            if pii_type in PiiType.__members__ and value.strip():
                persons.setdefault((value, pii_type), set()).add(letter)
    locator = locator_of(text)
    taken = bytearray(len(text))
    marks = []
    for (value, pii_type), letters in sorted(persons.items(), key=lambda p: (-len(p[0][0]), p[0])):
        for found in locator.spans(value, Strictness.VERBATIM) or locator.spans(value):
            span = snap(text, *found)
            if span is not None and not any(taken[slice(*span)]):
                taken[slice(*span)] = b"\1" * (span[1] - span[0])
                name = name_of(pii_type, value)
                category = name if TYPE_OF_CATEGORY.get(name) == pii_type else None
                marks.append(Mark(*span, tuple(sorted(letters)), pii_type, category, origin))
    return tuple(sorted(marks))
