"""What of a text is masked, the text with tags, and the way back."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

from pii_bench.errors import PiiBenchError
from pii_bench.masking.tags import TAG, name_of, number_tags, plain_key, tag_key
from pii_bench.scorer import normalise, normalise_type
from pii_bench.scorer.locate import Claim, DetectedSpan, Locator, locator_of, reading, settle
from pii_bench.taxonomy import PiiType

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pii_bench.scorer.locate import Span

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
    along. `settle` tells what happens where they overlap. The order of entities and of kept texts
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
    granted = settle(text, claims, map(locator.spans, kept))
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
