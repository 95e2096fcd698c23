"""Answers of annotators: marks in a text, and the choice of what a query needs.

Answers come from a browser, so everything in them is checked here. Spans are code points, end
exclusive, and always cover whole tokens.
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
"""The origin of a mark that a person made; other marks have the name of a system."""

LONGEST_REMARK: Final = 2000
MOST_MARKS: Final = 5000

PERSONS: Final = tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZ")


@dataclass(frozen=True, slots=True, order=True)
class Mark:
    """A marked piece of PII; `parse_marks` reads it as a dictionary.

    Attributes:
        persons: sorted letters of the persons it belongs to.
        category: None until the annotator has chosen one.
        origin: `HAND`, or the system that suggested the mark.
    """

    start: int
    end: int
    persons: tuple[str, ...]
    type: str
    category: str | None = None
    origin: str = HAND

    @property
    def span(self) -> Span:
        """Start and end."""
        return self.start, self.end


@dataclass(frozen=True, slots=True)
class Item:
    """An entity that stage 2 asks about, with the letter of its person and all its spans."""

    person: str
    text: str
    type: str
    category: str | None
    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """An answer of stage 2.

    Attributes:
        needed: sorted numbers of the items that the query needs.
        persons: corrections, from the number of an item to the person that it belongs to.
        necessary: the annotator confirmed that each chosen item is needed.
        sufficient: the annotator confirmed that the chosen items are enough.
        ambiguous: reasonable people could choose otherwise.
    """

    needed: tuple[int, ...] = ()
    persons: Mapping[int, str] = field(default_factory=dict)
    necessary: bool = False
    sufficient: bool = False
    ambiguous: bool = False
    remark: str = ""


@lru_cache(maxsize=8)
def token_places(text: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the starts and the ends of a text's tokens, cached: each mark of a text asks again."""
    tokens = tokenize(text)
    return tuple(token.start for token in tokens), tuple(token.end for token in tokens)


def snap(text: str, start: int, end: int) -> Span | None:
    """Extend a selection to whole tokens; None if it touches no token."""
    starts, ends = token_places(text)
    first, last = bisect_right(ends, start), bisect_left(starts, end)
    return (starts[first], ends[last - 1]) if first < last else None


def occurrences(text: str, span: Span) -> tuple[Span, ...]:
    """Return the span and all others that have its text and cover whole tokens."""
    start, end = span
    others = locator_of(text).spans(text[start:end], Strictness.VERBATIM)
    return tuple(sorted({span, *(other for other in others if snap(text, *other) == other)}))


def parse_marks(text: str, answer: Mapping[str, Any]) -> tuple[Mark, ...]:
    """Parse the marks of an answer to stage 1, in the order of the text.

    Raises:
        PiiBenchError: the list or a mark is invalid, or marks overlap.
    """
    values = answer.get("marks")
    if not isinstance(values, list) or len(values) > MOST_MARKS:
        raise PiiBenchError(f"'marks' must be a list of at most {MOST_MARKS} marks")
    marks = sorted((_parse_mark(text, value) for value in values), key=lambda mark: mark.span)
    for one, other in pairwise(marks):
        if other.start < one.end:
            raise PiiBenchError(f"marks overlap at {other.start}")
    return tuple(marks)


def _parse_mark(text: str, value: object) -> Mark:
    if not isinstance(value, dict):
        raise PiiBenchError("a mark must be an object")
    start, end = value.get("start"), value.get("end")
    if not isinstance(start, int) or not isinstance(end, int) or not 0 <= start < end <= len(text):
        raise PiiBenchError(f"a mark must have start and end, inside of 0 to {len(text)}")
    if snap(text, start, end) != (start, end):
        raise PiiBenchError(f"a mark from {start} to {end} does not cover whole tokens")
    persons, pii_type = value.get("persons"), value.get("type")
    if (
        not isinstance(persons, list | tuple)
        or not persons
        or any(p not in PERSONS for p in persons)
    ):
        raise PiiBenchError("the persons of a mark must be letters, A to Z, at least one")
    if pii_type not in list(PiiType):
        raise PiiBenchError(f"the type of a mark must be one of {', '.join(PiiType)}")
    category, origin = value.get("category"), value.get("origin", HAND)
    if category is not None and not isinstance(category, str):
        raise PiiBenchError("the category of a mark must be a name")
    if category is not None and TYPE_OF_CATEGORY.get(category) != pii_type:
        raise PiiBenchError(f"the category of a mark must be one of {pii_type}")
    if not isinstance(origin, str) or len(origin) > 200:
        raise PiiBenchError("the origin of a mark must be a name of at most 200 characters")
    return Mark(start, end, tuple(sorted(set(persons))), pii_type, category, origin)


def parse_choice(items: Sequence[Item], answer: Mapping[str, Any]) -> Choice:
    """Parse an answer to stage 2.

    Raises:
        PiiBenchError: it is invalid.
    """
    needed, persons = answer.get("needed"), answer.get("persons") or {}
    numbers = range(len(items))
    keys = {str(n): n for n in numbers}
    if not isinstance(needed, list) or not all(type(n) is int and n in numbers for n in needed):
        raise PiiBenchError(f"'needed' must list numbers of items, 0 to {len(items) - 1}")
    if not isinstance(persons, dict) or not all(
        key in keys and value in PERSONS for key, value in persons.items()
    ):
        raise PiiBenchError("'persons' must map numbers of items to letters")
    flags = {key: answer.get(key, False) for key in ("necessary", "sufficient", "ambiguous")}
    if not all(type(flag) is bool for flag in flags.values()):
        raise PiiBenchError("necessary, sufficient and ambiguous must be true or false")
    corrected = {keys[key]: value for key, value in persons.items()}
    return Choice(
        tuple(sorted(set(needed))),
        {number: p for number, p in sorted(corrected.items()) if p != items[number].person},
        remark=parse_remark(answer),
        **flags,
    )


def parse_remark(answer: Mapping[str, Any]) -> str:
    """Return the remark of an answer of either stage.

    Raises:
        PiiBenchError: it is not a string, or too long.
    """
    remark = answer.get("remark", "")
    if not isinstance(remark, str) or len(remark) > LONGEST_REMARK:
        raise PiiBenchError(f"a remark must be text of at most {LONGEST_REMARK:,} characters")
    return remark


def items_of_marks(text: str, marks: Iterable[Mark]) -> tuple[Item, ...]:
    """Group marks with the same person, text, type and category into entities."""
    spans: dict[tuple[str, str, str, str | None], list[Span]] = {}
    for mark in sorted(marks):
        for person in mark.persons:
            key = person, text[mark.start : mark.end], mark.type, mark.category
            spans.setdefault(key, []).append(mark.span)
    items = [Item(*key, spans=tuple(own)) for key, own in spans.items()]
    return tuple(sorted(items, key=lambda item: (item.spans[0], item.person)))


def items_of_sample(sample: Sample) -> tuple[Item, ...]:
    """Return the gold entities in the order of the text; those without a span come last."""
    items = (
        Item(letter, entity.text, entity.type, entity.category, entity.spans)
        for letter, subject in zip(PERSONS, sample.subjects, strict=False)
        for entity in subject.entities
    )
    last = (len(sample.description), 0)
    return tuple(sorted(items, key=lambda i: (i.spans[0] if i.spans else last, i.person)))


def marks_of_subjects(
    text: str, subjects: Iterable[Iterable[tuple[str, str]]], origin: str
) -> tuple[Mark, ...]:
    """Mark all occurrences of the (text, type) pairs that a system found for each subject.

    Longer texts go first. Marks that would overlap them, types other than `PiiType` and texts that
    do not occur are left out. A mark gets a category if the format of its text shows one.
    """
    persons: dict[tuple[str, str], set[str]] = {}
    for letter, subject in zip(PERSONS, subjects, strict=False):
        for value, pii_type in subject:
            if pii_type in PiiType.__members__ and value.strip():
                persons.setdefault((value, pii_type), set()).add(letter)
    locator = locator_of(text)
    marked = [False] * len(text)
    marks = []
    for (value, pii_type), letters in sorted(persons.items(), key=lambda p: (-len(p[0][0]), p[0])):
        name = name_of(pii_type, value)
        category = name if TYPE_OF_CATEGORY.get(name) == pii_type else None
        for place in locator.spans(value, Strictness.VERBATIM) or locator.spans(value):
            span = snap(text, *place)
            if span is None or any(marked[span[0] : span[1]]):
                continue
            marked[span[0] : span[1]] = [True] * (span[1] - span[0])
            marks.append(Mark(*span, tuple(sorted(letters)), pii_type, category, origin))
    return tuple(sorted(marks))
