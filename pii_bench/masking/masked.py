"""What of a text is masked, the text with tags, and the way back.

The name in a tag, `<Phone Number>`, is a category of the taxonomy where the format of the text
decides it within the predicted type, and the plain name of the type elsewhere. A format decides
only where people write nothing else so: eight digits are a student's number in the taxonomy, but
any number in a letter, so they stay an `Identifier`. Sums of money look alike in all their
categories: `Amount`.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from dataclasses import dataclass, field
from itertools import count
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias

from pii_bench.datasets.value_formats import FORMATS, parse_amount
from pii_bench.errors import PiiBenchError
from pii_bench.scorer import normalise, normalise_type
from pii_bench.scorer.locate import (
    Claim,
    DetectedSpan,
    Locator,
    locator_of,
    reading,
    resolve_claims,
)
from pii_bench.taxonomy import PiiType

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence

    from pii_bench.scorer.locate import Span

    Format = tuple[str, Callable[[str], bool]]


TAG: Final = re.compile(
    r"(?:<|&(?:lt|#60|#x3c);)([^<>\[\]&]+)(?:>|&(?:gt|#62|#x3e);)|\[([^<>\[\]&]+)\]",
    re.IGNORECASE,
)
"""What may be a tag: `<Age>`, and as answers change it: `[Age]`, `&lt;Age&gt;`, `&#60;Age&#62;`."""

_BETWEEN_WORDS: Final = re.compile(r"[\W_]+")

PLAIN_NAMES: Final[Mapping[str, str]] = MappingProxyType(
    {
        PiiType.PER: "Person",
        PiiType.CODE: "Identifier",
        PiiType.LOC: "Location",
        PiiType.ORG: "Organisation",
        PiiType.DEM: "Personal Detail",
        PiiType.DATETIME: "Date or Time",
        PiiType.QUANTITY: "Financial Figure",
    }
)
"""The name of a type, for texts whose format tells no category."""

ANY_TYPE: Final = "Personal Information"
"""The name of a type that is none of the seven."""

_MONTH: Final = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
)
_DAY: Final = r"(?:3[01]|[12]\d|0?[1-9])(?:st|nd|rd|th)?"
_YEAR: Final = r"(?:1[89]|20)\d\d"
_AM_PM: Final = r"[ap]\.?m\.?"


def _like(*patterns: str) -> Callable[[str], bool]:
    compiled = re.compile("|".join(f"(?:{each})" for each in patterns), re.ASCII | re.IGNORECASE)
    return lambda text: compiled.fullmatch(text) is not None


def _of_category(name: str) -> Format:
    return name, FORMATS[name]


def _is_card_number(text: str) -> bool:
    return FORMATS["Credit Card"](re.sub(r"(?<=\d)[ -](?=\d)", "", text))


TAG_NAMES: Final[Mapping[str, tuple[Format, ...]]] = MappingProxyType(
    {
        PiiType.PER: (
            ("Social Media Handle", _like(r"@[\w.-]{2,30}")),
            _of_category("Full Name"),
        ),
        PiiType.CODE: (
            _of_category("Email Address"),
            _of_category("Social Security Number"),
            _of_category("IP Address"),
            _of_category("Password Hash"),
            ("Credit Card", _is_card_number),
            (
                "Phone Number",
                _like(
                    # E.164: at most 15 digits behind the plus.
                    r"\+[1-9](?:[ ().-]{0,3}\d){6,14}",
                    r"(?:1[ .-])?(?:\([2-9]\d\d\) ?|[2-9]\d\d[ .-])[2-9]\d\d[ .-]\d{4}",
                ),
            ),
        ),
        PiiType.DEM: (
            _of_category("Gender"),
            _of_category("Height"),
            _of_category("Weight"),
            _of_category("Blood Type"),
            _of_category("Sexual Orientation"),
            ("Age", _like(r"(?:[1-9]?\d|1[01]\d|120)(?:[ -]years?(?:[ -](?:old|of age))?)?")),
        ),
        PiiType.DATETIME: (
            (
                "Time",
                _like(
                    rf"(?:[01]?\d|2[0-3])[:.][0-5]\d(?::[0-5]\d)?(?: ?{_AM_PM})?",
                    rf"(?:1[0-2]|0?[1-9]) ?{_AM_PM}",
                ),
            ),
            (
                "Date",
                _like(
                    rf"{_YEAR}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])",
                    r"\d{1,2}([./-])\d{1,2}\1(?:\d\d|\d{4})",
                    rf"(?:{_DAY}(?: of)? )?{_MONTH}(?:,? {_YEAR})?",
                    rf"{_MONTH} {_DAY}(?:,? {_YEAR})?",
                ),
            ),
            (
                "Duration",
                _like(
                    r"\d+(?:\.\d+)?[ -]?(?:d|h|m|s|(?:sec|min|second|minute|hour|day|week|month"
                    r"|year)s?)"
                ),
            ),
        ),
        PiiType.QUANTITY: (
            ("Amount", lambda text: parse_amount(text) is not None),
            ("Percentage", _like(r"[-+\u2212]?\d+(?:[.,]\d+)? ?%")),
        ),
    }
)
"""Per type the names whose formats tell them apart, the first that fits counts."""


def name_of(pii_type: str, text: str) -> str:
    """The name in the tag of a text, without its number; any type is fine."""
    plain = normalise(text)
    fitting = (name for name, fits in TAG_NAMES.get(pii_type, ()) if fits(plain))
    return next(fitting, PLAIN_NAMES.get(pii_type, ANY_TYPE))


def number_tags(names: Mapping[str, str], text: str) -> dict[str, str]:
    """A tag for each of several texts, each another.

    A name that only one of them has is not numbered; others are, from 1, in order. A tag
    that is in the text already, in any writing, is not given to anything: the two could not be
    told apart.

    Args:
        names: text to the name of its tag.
        text: what is masked.

    Returns:
        The same texts, each with its tag.
    """
    present = {tag_key(match) for match in TAG.finditer(text)}
    shared = Counter(names.values())
    free = {name: _free_tags(name, present) for name in shared}
    tags: dict[str, str] = {}
    for masked, name in names.items():
        alone = f"<{name}>"
        unnumbered = shared[name] == 1 and plain_key(name) not in present
        tags[masked] = alone if unnumbered else next(free[name])
    return tags


def _free_tags(name: str, present: Container[str]) -> Iterator[str]:
    numbered = (f"{name} {number}" for number in count(1))
    return (f"<{each}>" for each in numbered if plain_key(each) not in present)


def tag_key(match: re.Match[str]) -> str:
    """What a match of `TAG` says, whatever its brackets, case and spacing."""
    return plain_key(match[1] or match[2])


def plain_key(name: str) -> str:
    """The letters and digits of a name, without case."""
    return _BETWEEN_WORDS.sub("", name).casefold()


Entity: TypeAlias = tuple[str, str] | DetectedSpan
"""A pair (text, type), which is looked for in the text, or a place in it."""

_RANKS: Final = {pii_type.value: rank for rank, pii_type in enumerate(PiiType)}


@dataclass(frozen=True, slots=True)
class Plan:
    """What is masked.

    Attributes:
        claims: spans in order, none overlapping another, each labelled with its type.
        not_found: texts of entities that are nowhere in the text, each once, sorted.
    """

    claims: tuple[Claim, ...]
    not_found: tuple[str, ...]

    @property
    def spans(self) -> list[Span]:
        """The spans alone."""
        return [(claim.start, claim.end) for claim in self.claims]


def make_plan(
    text: str, entities: Iterable[Entity], keep: Iterable[str], locator: Locator | None = None
) -> Plan:
    """Tell what of a text is masked: all entities but those whose text is to be kept.

    A pair is masked, and a kept text stays, wherever it can be read (`Strictness.READABLE`). A
    span is masked where it says, also inside a word, and takes the combining marks behind it
    along. `resolve_claims` decides where they overlap. The order of entities and of kept texts
    changes nothing.

    Args:
        text: any text.
        entities: what is there to mask.
        keep: texts that stay; an entity whose text is one of them, as the scorer compares texts,
            is not masked.
        locator: that of the text, which many plans of one text share; None to make it here.

    Raises:
        PiiBenchError: a span that is not in the text, an entity of another kind, or `keep` is
            one string, whose letters would pass as texts.
    """
    if isinstance(keep, str):
        raise PiiBenchError("keep came as one str; allowed: an iterable of str")
    kept = {normalise(each) for each in keep}
    locator = Locator(text) if locator is None else locator
    claims: list[Claim] = []
    not_found: set[str] = set()
    for entity in entities:
        written, pii_type, spans = _located(text, locator, entity)
        if normalise(written) in kept or not written.strip():
            continue
        rank = _RANKS.get(pii_type, len(_RANKS))
        claims += [Claim(start, end, rank, pii_type) for start, end in spans]
        if not spans:
            not_found.add(written)
    granted = resolve_claims(text, claims, map(locator.spans, kept))
    return Plan(tuple(granted), tuple(sorted(not_found)))


def plan_of(
    description: str,
    subjects: Sequence[Sequence[tuple[str, str]]] | None,
    related: Iterable[str] | None,
) -> Plan | None:
    """What of a description is masked by the answers to both tasks.

    Args:
        description: the text.
        subjects: (text, type) pairs by person; None where there is no usable answer.
        related: texts that the query needs; likewise.

    Returns:
        None where one of the two is missing.
    """
    if subjects is None or related is None:
        return None
    entities = [entity for subject in subjects for entity in subject]
    return make_plan(description, entities, related, locator_of(description))


def _located(text: str, locator: Locator, entity: Entity) -> tuple[str, str, Sequence[Span]]:
    """The text, the type and the spans of an entity."""
    if isinstance(entity, DetectedSpan):
        start, end = entity.start, entity.end
        if not 0 <= start <= end <= len(text):
            allowed = f"0 <= start <= end <= {len(text)}"
            raise PiiBenchError(f"a span came from {start} to {end}; allowed: {allowed}")
        while start < end < len(text) and unicodedata.category(text[end]).startswith("M"):
            end += 1
        return text[start:end], normalise_type(entity.type), ((start, end),)
    written, pii_type = _pair(entity)
    return written, normalise_type(pii_type), locator.spans(written)


def _pair(entity: object) -> tuple[str, str]:
    # A str of two letters unpacks like a pair, and so do the keys of a dict.
    if not isinstance(entity, (tuple, list)) or len(entity) != 2:
        kind = type(entity).__name__
        raise PiiBenchError(f"an entity came as {kind}; allowed: (text, type) or DetectedSpan")
    return entity[0], entity[1]


_NUMBER: Final = re.compile(r"\d+$")


@dataclass(frozen=True, slots=True)
class MaskedSpan:
    """A piece of a text that a tag stands for: code points of the text as it was, end exclusive."""

    start: int
    end: int
    tag: str


@dataclass(frozen=True, slots=True)
class Masked:
    """A masked text. Shown as a value (`repr`) it tells nothing: it may end up in a log.

    Attributes:
        text: the text with tags.
        mapping: each tag with what it stands for: one text, or where its places are written
            in different ways (case, hyphens, white space) the text of each place in order.
        spans: what was really masked, in order, none overlapping another.
        not_found: texts of entities that are nowhere in the text, so that nothing was masked.
    """

    text: str = field(repr=False)
    mapping: Mapping[str, tuple[str, ...]] = field(repr=False)
    spans: tuple[MaskedSpan, ...] = field(repr=False)
    not_found: tuple[str, ...] = field(repr=False, default=())

    @property
    def places(self) -> int:
        """How many tags are in the text."""
        return len(self.spans)


def mask(
    text: str,
    entities: Iterable[Entity],
    keep: Iterable[str] = (),
    *,
    locator: Locator | None = None,
) -> Masked:
    """Replace entities by tags, but for those to keep; `unmask` restores the text exactly.

    All writings of one value (`Strictness.READABLE`) have the same tag everywhere. `make_plan`
    tells what is masked where entities overlap, `tags` what the tags say.

    Args:
        text: any text; one that holds something like a tag is restored as well.
        entities: pairs (text, type) or spans.
        keep: texts of entities that are not masked.
        locator: see `make_plan`.

    Raises:
        PiiBenchError: see `make_plan`.
    """
    plan = make_plan(text, entities, keep, locator)
    names: dict[str, str] = {}
    for claim in plan.claims:
        piece = text[claim.start : claim.end]
        if (key := reading(piece)) not in names:
            names[key] = name_of(claim.label, piece)
    tags = number_tags(names, text)
    spans = tuple(
        MaskedSpan(claim.start, claim.end, tags[reading(text[claim.start : claim.end])])
        for claim in plan.claims
    )
    return Masked(_with_tags(text, spans), _mapping(text, spans), spans, plan.not_found)


def _with_tags(text: str, spans: Iterable[MaskedSpan]) -> str:
    parts: list[str] = []
    end = 0
    for span in spans:
        parts += [text[end : span.start], span.tag]
        end = span.end
    return "".join([*parts, text[end:]])


def _mapping(text: str, spans: Iterable[MaskedSpan]) -> dict[str, tuple[str, ...]]:
    written: dict[str, list[str]] = {}
    for span in spans:
        written.setdefault(span.tag, []).append(text[span.start : span.end])
    return {
        tag: tuple(texts if len(set(texts)) > 1 else texts[:1]) for tag, texts in written.items()
    }


def unmask(masked_text: str, mapping: Mapping[str, tuple[str, ...]]) -> str:
    """Put back what tags stand for, in a masked text or in an answer that uses its tags.

    A tag counts in any case and spacing, and in brackets or HTML escapes as well. One that
    stands for several writings of one text is the first of them, unless it occurs as often as
    there are writings.
    """
    uses = Counter(tag_key(match) for match in TAG.finditer(masked_text))
    left = {
        (key := _key(tag)): iter(texts if len(texts) == uses[key] else texts[:1] * uses[key])
        for tag, texts in mapping.items()
    }

    def restored(match: re.Match[str]) -> str:
        key = tag_key(match)
        return next(left[key]) if key in left else match[0]

    return TAG.sub(restored, masked_text)


def absent_tags(text: str, mapping: Mapping[str, tuple[str, ...]]) -> list[str]:
    """The tags of a mapping that are not in a text."""
    present = {tag_key(match) for match in TAG.finditer(text)}
    return [tag for tag in mapping if _key(tag) not in present]


def inexact_tags(text: str, mapping: Mapping[str, tuple[str, ...]]) -> list[str]:
    """What is in a text like a tag of a mapping, but with another number.

    `<Phone Number 9>` is like `<Phone Number>`; it is not restored.

    Returns:
        Each once, in the order of the text.
    """
    keys = {_key(tag) for tag in mapping}
    names = {_NUMBER.sub("", key) for key in keys}
    return [
        *dict.fromkeys(
            match[0]
            for match in TAG.finditer(text)
            if (key := tag_key(match)) not in keys and _NUMBER.sub("", key) in names
        )
    ]


def _key(tag: str) -> str:
    return plain_key(tag.strip("<>"))
