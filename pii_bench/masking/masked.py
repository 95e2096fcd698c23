"""A text with tags in it, and the way back."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pii_bench.masking.plan import make_plan
from pii_bench.masking.tags import number_tags
from pii_bench.scorer import normalise

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pii_bench.masking.places import Places
    from pii_bench.masking.plan import Entity

_TAG: Final = re.compile(r"<([^<>]{1,60})>")
_NUMBER: Final = re.compile(r"\d+$")
_BETWEEN_WORDS: Final = re.compile(r"[\W_]+")


@dataclass(frozen=True, slots=True)
class Masked:
    """A masked text. Shown as a value (`repr`) it tells nothing: it may end up in a log.

    Attributes:
        text: the text with tags.
        mapping: each tag with what it stands for: one text, or where its places are written
            in different ways (white space, Unicode) the text of each place in order.
        places: how many tags stand in the text.
        not_found: texts of entities that stand nowhere in the text, so that nothing was masked.
    """

    text: str = field(repr=False)
    mapping: Mapping[str, tuple[str, ...]] = field(repr=False)
    places: int
    not_found: tuple[str, ...] = field(repr=False, default=())


def mask(
    text: str,
    entities: Iterable[Entity],
    keep: Iterable[str] = (),
    *,
    places: Places | None = None,
) -> Masked:
    """Replace entities by tags, but for those to keep; `unmask` restores the text exactly.

    The same text, as the scorer compares texts, has the same tag everywhere. `make_plan` tells
    what is masked where entities overlap, `tags` what the tags say.

    Args:
        text: any text; one that holds something like a tag is restored as well.
        entities: pairs (text, type) or spans.
        keep: texts of entities that are not masked.
        places: see `make_plan`.

    Raises:
        PiiBenchError: see `make_plan`.
    """
    plan = make_plan(text, entities, keep, places)
    names: dict[str, str] = {}
    for piece in plan.replacements:
        names.setdefault(normalise(text[piece.start : piece.end]), piece.name)
    tags = number_tags(names, text)
    parts: list[str] = []
    written: dict[str, list[str]] = {}
    end = 0
    for piece in plan.replacements:
        original = text[piece.start : piece.end]
        tag = tags[normalise(original)]
        written.setdefault(tag, []).append(original)
        parts += [text[end : piece.start], tag]
        end = piece.end
    return Masked(
        text="".join([*parts, text[end:]]),
        mapping={
            tag: tuple(texts if len(set(texts)) > 1 else texts[:1])
            for tag, texts in written.items()
        },
        places=len(plan.replacements),
        not_found=plan.not_found,
    )


def unmask(masked_text: str, mapping: Mapping[str, tuple[str, ...]]) -> str:
    """Put back what tags stand for, in a masked text or in an answer that uses its tags.

    Only tags that are written exactly so count. A tag that stands for several writings of one
    text is the first of them, unless it stands as often as there are writings.
    """
    if not mapping:
        return masked_text
    pattern = re.compile("|".join(map(re.escape, mapping)))
    uses = Counter(pattern.findall(masked_text))
    left = {
        tag: iter(texts if len(texts) == uses[tag] else texts[:1] * uses[tag])
        for tag, texts in mapping.items()
    }
    return pattern.sub(lambda match: next(left[match[0]]), masked_text)


def absent_tags(text: str, mapping: Mapping[str, tuple[str, ...]]) -> list[str]:
    """The tags of a mapping that do not stand in a text."""
    return [tag for tag in mapping if tag not in text]


def inexact_tags(text: str, mapping: Mapping[str, tuple[str, ...]]) -> list[str]:
    """What stands in a text like a tag of a mapping, but in other writing or with another number.

    `<phone number>` is like `<Phone Number>`, and so is `<Phone Number 9>`; neither is restored.

    Returns:
        Each once, in the order of the text.
    """
    names = {_bare(tag) for tag in mapping}
    tags = (match[0] for match in _TAG.finditer(text))
    return [*dict.fromkeys(tag for tag in tags if tag not in mapping and _bare(tag) in names)]


def _bare(tag: str) -> str:
    return _NUMBER.sub("", _BETWEEN_WORDS.sub("", tag).casefold())
