"""A text with tags in it, and the way back."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pii_bench.masking.plan import make_plan
from pii_bench.masking.tags import TAG, name_of, number_tags, plain_key, tag_key
from pii_bench.scorer.locate import reading

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pii_bench.masking.plan import Entity
    from pii_bench.scorer.locate import Locator

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
        """How many tags stand in the text."""
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
    """The tags of a mapping that do not stand in a text."""
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
