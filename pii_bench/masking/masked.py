"""Masking a text with tags, and restoring it.

The name in a tag, such as `<Phone Number>`, is a category of the taxonomy if the format of the
text determines the category within the predicted type, and otherwise the plain name of the type.
Only unambiguous formats count: eight digits are a student number in the taxonomy but may be any
number in a letter, so they are tagged `Identifier`. Sums of money have the same format in
all categories, so they are tagged `Amount`.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass, field
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
from pii_bench.scorer.writings import MONTH_NAMES
from pii_bench.taxonomy import PiiType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pii_bench.scorer.locate import Span

    Format = tuple[str, Callable[[str], bool]]


TAG: Final = re.compile(
    # Both backslashes or none: the one in front may be the text's, and two are one in JSON.
    r"(?P<escape>(?<!\\)\\)?(?:"
    r"(?:<|&(?:lt|#60|#x3c);)(?P<angled>[^<>\[\]&]+)(?(escape)\\)(?:>|&(?:gt|#62|#x3e);)"
    r"|\[(?P<squared>[^<>\[\]&]+)(?(escape)\\)\])",
    re.IGNORECASE,
)
"""A possible tag: `<Age>` or a variant from an answer: `[Age]`, `&lt;Age&gt;`, `&#60;Age&#62;`, and
as Markdown escapes them: `\\<Age\\>`, `\\[Age\\]`."""

_BETWEEN_WORDS: Final = re.compile(r"[\W_]+")

PLAIN_NAMES: Final[Mapping[str, str]] = {
    PiiType.PER: "Person",
    PiiType.CODE: "Identifier",
    PiiType.LOC: "Location",
    PiiType.ORG: "Organisation",
    PiiType.DEM: "Personal Detail",
    PiiType.DATETIME: "Date or Time",
    PiiType.QUANTITY: "Financial Figure",
}
"""The tag name of each type, for texts whose format does not determine a category."""

ANY_TYPE: Final = "Personal Information"
"""The tag name of a type outside the taxonomy."""

MONTH: Final = rf"(?:{MONTH_NAMES})\.?"
"""A pattern of the names of months, full or short."""
_DAY: Final = r"(?:3[01]|[12]\d|0?[1-9])(?:st|nd|rd|th)?"
_YEAR: Final = r"(?:1[89]|20)\d\d"
_AM_PM: Final = r"[ap]\.?m\.?"


def _matches(*patterns: str) -> Callable[[str], bool]:
    alternatives = "|".join(f"(?:{pattern})" for pattern in patterns)
    compiled = re.compile(alternatives, re.ASCII | re.IGNORECASE)
    return lambda text: compiled.fullmatch(text) is not None


def _category(name: str) -> Format:
    return name, FORMATS[name]


def _is_card_number(text: str) -> bool:
    return FORMATS["Credit Card"](re.sub(r"(?<=\d)[ -](?=\d)", "", text))


TAG_NAMES: Final[Mapping[str, tuple[Format, ...]]] = {
    PiiType.PER: (
        ("Social Media Handle", _matches(r"@[\w.-]{2,30}")),
        _category("Full Name"),
    ),
    PiiType.CODE: (
        _category("Email Address"),
        _category("Social Security Number"),
        _category("IP Address"),
        _category("Password Hash"),
        ("Credit Card", _is_card_number),
        (
            "Phone Number",
            _matches(
                # E.164: at most 15 digits after the plus.
                r"\+[1-9](?:[ ().-]{0,3}\d){6,14}",
                r"(?:1[ .-])?(?:\([2-9]\d\d\) ?|[2-9]\d\d[ .-])[2-9]\d\d[ .-]\d{4}",
            ),
        ),
    ),
    PiiType.DEM: (
        _category("Gender"),
        _category("Height"),
        _category("Weight"),
        _category("Blood Type"),
        _category("Sexual Orientation"),
        ("Age", _matches(r"(?:[1-9]?\d|1[01]\d|120)(?:[ -]years?(?:[ -](?:old|of age))?)?")),
    ),
    PiiType.DATETIME: (
        (
            "Time",
            _matches(
                rf"(?:[01]?\d|2[0-3])[:.][0-5]\d(?::[0-5]\d)?(?: ?{_AM_PM})?",
                rf"(?:1[0-2]|0?[1-9]) ?{_AM_PM}",
            ),
        ),
        (
            "Date",
            _matches(
                rf"{_YEAR}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])",
                r"\d{1,2}([./-])\d{1,2}\1(?:\d\d|\d{4})",
                rf"(?:{_DAY}(?: of)? )?{MONTH}(?:,? {_YEAR})?",
                rf"{MONTH} {_DAY}(?:,? {_YEAR})?",
            ),
        ),
        (
            "Duration",
            _matches(
                r"\d+(?:\.\d+)?[ -]?(?:d|h|m|s|(?:sec|min|second|minute|hour|day|week|month"
                r"|year)s?)"
            ),
        ),
    ),
    PiiType.QUANTITY: (
        ("Amount", lambda text: parse_amount(text) is not None),
        ("Percentage", _matches(r"[-+\u2212]?\d+(?:[.,]\d+)? ?%")),
    ),
}
"""Tag names with a format, by type; the first format that matches decides."""


def name_of(pii_type: str, text: str) -> str:
    """Return the tag name for a text, without a number; unknown types are allowed."""
    plain = normalise(text)
    for name, matches in TAG_NAMES.get(pii_type, ()):
        if matches(plain):
            return name
    return PLAIN_NAMES.get(pii_type, ANY_TYPE)


def number_tags(names: Mapping[str, str], text: str) -> dict[str, str]:
    """Return value to tag for several values, given value to the name in its tag.

    Values that share a name are numbered from 1, in order. Tags that the text already contains,
    in any spelling, are skipped, because unmasking could not tell them apart.
    """
    present = {tag_key(match) for match in TAG.finditer(text)}
    uses = Counter(names.values())
    last: Counter[str] = Counter()
    tags: dict[str, str] = {}
    for value, name in names.items():
        tag_name = name
        while plain_key(tag_name) in present or (uses[name] > 1 and tag_name == name):
            last[name] += 1
            tag_name = f"{name} {last[name]}"
        tags[value] = f"<{tag_name}>"
    return tags


def tag_key(match: re.Match[str]) -> str:
    """Return the `plain_key` of the name in a match of `TAG`."""
    return plain_key(match["angled"] or match["squared"])


def plain_key(name: str) -> str:
    """Return the letters and digits of a tag or its name, case-folded."""
    return _BETWEEN_WORDS.sub("", name).casefold()


Entity: TypeAlias = tuple[str, str] | DetectedSpan
"""A (text, type) pair, which is searched for in the text, or a span of the text."""

_RANKS: Final = {pii_type.value: rank for rank, pii_type in enumerate(PiiType)}


@dataclass(frozen=True, slots=True)
class Plan:
    """The spans of a text to mask: sorted, without overlaps, each labelled with its type.

    `not_found` are the texts of entities that do not occur, sorted and without duplicates.
    """

    claims: tuple[Claim, ...]
    not_found: tuple[str, ...]

    @property
    def spans(self) -> list[Span]:
        """The (start, end) pairs of the claims."""
        return [(claim.start, claim.end) for claim in self.claims]


def make_plan(
    text: str, entities: Iterable[Entity], keep: Iterable[str], locator: Locator | None = None
) -> Plan:
    """Return the spans of a text to mask: all entities except those to keep.

    Pairs are masked, and texts are kept, at all their readable occurrences
    (`Strictness.READABLE`). A span is masked exactly, even inside a word, with the combining marks
    that follow it. Texts to keep are compared as the scorer compares texts. `resolve_claims`
    resolves overlaps. The order of `entities` and `keep` does not matter. `locator` is that of
    `text`, to share among several plans.

    Raises:
        PiiBenchError: a span lies outside the text, an entity is neither a pair nor a span, or
            `keep` is a single string.
    """
    if isinstance(keep, str):
        raise PiiBenchError("keep came as one str; allowed: an iterable of str")
    kept = {normalise(kept_text) for kept_text in keep}
    locator = Locator(text) if locator is None else locator
    claims: list[Claim] = []
    not_found: set[str] = set()
    for entity in entities:
        value, pii_type, spans = _locate(text, locator, entity)
        if normalise(value) in kept or not value.strip():
            continue
        rank = _RANKS.get(pii_type, len(_RANKS))
        claims += [Claim(start, end, rank, pii_type) for start, end in spans]
        if not spans:
            not_found.add(value)
    resolved = resolve_claims(text, claims, [locator.spans(kept_text) for kept_text in kept])
    return Plan(tuple(resolved), tuple(sorted(not_found)))


def plan_of(
    description: str,
    subjects: Sequence[Sequence[tuple[str, str]]] | None,
    related: Iterable[str] | None,
) -> Plan | None:
    """Return the spans of a description to mask, from the answers to both tasks.

    `subjects` are the (text, type) pairs of each person, and `related` the texts that the query
    needs; without either answer there is no plan.
    """
    if subjects is None or related is None:
        return None
    entities = [entity for subject in subjects for entity in subject]
    return make_plan(description, entities, related, locator_of(description))


def _locate(text: str, locator: Locator, entity: object) -> tuple[str, str, Sequence[Span]]:
    if isinstance(entity, DetectedSpan):
        start, end = entity.start, entity.end
        if not 0 <= start <= end <= len(text):
            allowed = f"0 <= start <= end <= {len(text)}"
            raise PiiBenchError(f"a span came from {start} to {end}; allowed: {allowed}")
        while start < end < len(text) and unicodedata.category(text[end]).startswith("M"):
            end += 1
        return text[start:end], normalise_type(entity.type), ((start, end),)
    # A string of two letters and a dict of two keys would also unpack as a pair.
    if not isinstance(entity, (tuple, list)) or len(entity) != 2:
        kind = type(entity).__name__
        raise PiiBenchError(f"an entity came as {kind}; allowed: (text, type) or DetectedSpan")
    value, pii_type = entity
    return value, normalise_type(pii_type), locator.spans(value)


_NUMBER: Final = re.compile(r"\d+$")


@dataclass(frozen=True, slots=True)
class MaskedSpan:
    """A span of the original text that a tag replaces (code points, end exclusive)."""

    start: int
    end: int
    tag: str
    type: str


@dataclass(frozen=True, slots=True)
class Masked:
    """A masked text. Its `repr` hides all fields, because it may end up in a log.

    Attributes:
        text: the text with tags.
        mapping: tag to the text that it replaces, or to the text of each occurrence, in order, if
            the occurrences differ (in case, hyphens, white space).
        spans: the masked spans, sorted, without overlaps.
        not_found: texts of entities that do not occur in the text.
    """

    text: str = field(repr=False)
    mapping: Mapping[str, tuple[str, ...]] = field(repr=False)
    spans: tuple[MaskedSpan, ...] = field(repr=False)
    not_found: tuple[str, ...] = field(repr=False, default=())

    def tag_over(self, start: int, end: int) -> str | None:
        """Return the first tag that replaces a part of a span of the original text, or None."""
        place = bisect_right(self.spans, start, key=lambda span: span.end)
        overlaps = place < len(self.spans) and self.spans[place].start < end
        return self.spans[place].tag if overlaps else None


def mask(
    text: str,
    entities: Iterable[Entity],
    keep: Iterable[str] = (),
    *,
    locator: Locator | None = None,
) -> Masked:
    """Replace entities with tags, except those to keep; `unmask` restores the text exactly.

    All spellings of a value (`Strictness.READABLE`) get the same tag. See `make_plan` for
    overlapping entities, and `number_tags` for the tags. The text may contain something like a tag.

    Raises:
        PiiBenchError: see `make_plan`.
    """
    plan = make_plan(text, entities, keep, locator)
    names: dict[str, str] = {}
    for claim in plan.claims:
        value = text[claim.start : claim.end]
        names.setdefault(reading(value), name_of(claim.label, value))
    tags = number_tags(names, text)

    parts: list[str] = []
    spans: list[MaskedSpan] = []
    occurrences: dict[str, list[str]] = {}
    position = 0
    for start, end, _, pii_type in plan.claims:
        value = text[start:end]
        tag = tags[reading(value)]
        parts += [text[position:start], tag]
        spans.append(MaskedSpan(start, end, tag, pii_type))
        occurrences.setdefault(tag, []).append(value)
        position = end
    mapping = {
        tag: tuple(values) if len(set(values)) > 1 else (values[0],)
        for tag, values in occurrences.items()
    }
    return Masked("".join([*parts, text[position:]]), mapping, tuple(spans), plan.not_found)


def unmask(masked_text: str, mapping: Mapping[str, tuple[str, ...]]) -> str:
    """Replace tags with their texts, in a masked text or in an answer that uses its tags.

    Tags match in any case and spacing, in brackets, and escaped as in HTML or Markdown. A tag with
    several spellings gets each of them in order if it occurs exactly that often, otherwise the
    first.

    Raises:
        PiiBenchError: a tag of the mapping has no text.
    """
    uses = Counter(tag_key(match) for match in TAG.finditer(masked_text))
    remaining: dict[str, Iterator[str]] = {}
    for number, (tag, texts) in enumerate(mapping.items(), start=1):
        if not texts:
            raise PiiBenchError(f"tag {number} of the mapping has no text; allowed: one or more")
        key = plain_key(tag)
        remaining[key] = iter(texts if len(texts) == uses[key] else texts[:1] * uses[key])

    def restore(match: re.Match[str]) -> str:
        key = tag_key(match)
        return next(remaining[key]) if key in remaining else match[0]

    return TAG.sub(restore, masked_text)


def absent_tags(text: str, mapping: Mapping[str, tuple[str, ...]]) -> list[str]:
    """Return the tags of a mapping that a text does not contain."""
    present = {tag_key(match) for match in TAG.finditer(text)}
    return [tag for tag in mapping if plain_key(tag) not in present]


def inexact_tags(text: str, mapping: Mapping[str, tuple[str, ...]]) -> list[str]:
    """Return the tags in a text that match a tag of a mapping except for the number.

    `unmask` does not restore such tags, for example `<Phone Number 9>` for `<Phone Number>`. They
    are as written, without duplicates, in the order of the text.
    """
    keys = {plain_key(tag) for tag in mapping}
    names = {_NUMBER.sub("", key) for key in keys}
    inexact: list[str] = []
    for match in TAG.finditer(text):
        key = tag_key(match)
        if key not in keys and _NUMBER.sub("", key) in names and match[0] not in inexact:
            inexact.append(match[0])
    return inexact
