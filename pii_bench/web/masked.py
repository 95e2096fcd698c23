"""A masked text as pages and programs get it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BaseModel, Field

from pii_bench.masking import mask
from pii_bench.masking.masked import make_plan
from pii_bench.scorer import normalise
from pii_bench.scorer.locate import Locator

if TYPE_CHECKING:
    from collections.abc import Iterable

Text = Annotated[str, Field(max_length=200_000)]
"""Of any kind; the server's own limit (`Settings.most_characters`) may be lower."""

Query = Annotated[str, Field(max_length=20_000)]
Tags = Annotated[dict[str, tuple[str, ...]], Field(max_length=20_000)]


class Entity(BaseModel):
    """A text that was found, with its type (one of the seven, or any other)."""

    text: Text
    type: Annotated[str, Field(max_length=60)]


class Span(BaseModel):
    """A place: code points of the text, end exclusive. `tag` is None where it stays readable."""

    start: int
    end: int
    type: str
    tag: str | None = None


class Masked(BaseModel):
    """What became of a text.

    Attributes:
        masked: the text with tags.
        mapping: each tag with what it stands for: send it back to `/unmask`, and nowhere else.
        spans: what was found, masked or left readable, in order.
        entities: the texts that were found.
        needed: those of them that stay, for the query needs them.
        undecided: the system did not tell the need, and everything is masked.
        not_found: texts that the system named and that are nowhere in the text.
    """

    masked: str
    mapping: dict[str, tuple[str, ...]]
    spans: list[Span]
    entities: list[Entity]
    needed: list[str]
    undecided: bool = False
    not_found: list[str] = []


OnFailure = Literal["refuse", "mask-all"]


def masked_text(
    text: str, entities: Iterable[tuple[str, str]], needed: tuple[str, ...] | None
) -> Masked:
    """Mask a text as `pii_bench.mask` does, and say what is where.

    Args:
        text: any text.
        entities: (text, type) pairs.
        needed: texts that stay; None where that is not known.
    """
    found, keep = list(dict.fromkeys(entities)), needed or ()
    locator = Locator(text)
    masked = mask(text, found, keep, locator=locator)
    claims = make_plan(text, found, keep, locator).claims
    spans = [
        Span(start=span.start, end=span.end, type=claim.label, tag=span.tag)
        for span, claim in zip(masked.spans, claims, strict=True)
    ]
    spans += _readable(found, keep, locator, spans)
    return Masked(
        masked=masked.text,
        mapping=dict(masked.mapping),
        spans=sorted(spans, key=lambda span: span.start),
        entities=[Entity(text=each, type=pii_type) for each, pii_type in found],
        needed=list(keep),
        undecided=needed is None,
        not_found=list(masked.not_found),
    )


def _readable(
    entities: Iterable[tuple[str, str]],
    keep: Iterable[str],
    locator: Locator,
    masked: Iterable[Span],
) -> list[Span]:
    """Where texts that stay are, without places that are masked or taken by a longer one."""
    kept = {normalise(each) for each in keep}
    taken = {point for span in masked for point in range(span.start, span.end)}
    places = {
        (start, end, pii_type)
        for text, pii_type in entities
        if normalise(text) in kept
        for start, end in locator.spans(text)
    }
    spans: list[Span] = []
    for start, end, pii_type in sorted(places, key=lambda each: (each[0] - each[1], each)):
        if taken.isdisjoint(range(start, end)):
            taken.update(range(start, end))
            spans.append(Span(start=start, end=end, type=pii_type))
    return spans
