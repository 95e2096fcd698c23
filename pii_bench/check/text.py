"""Where entities stand in a description."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pii_bench.masking.locate import Locator, Strictness

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pii_bench.datasets.sample import Entity, Sample
    from pii_bench.masking.locate import Span


def occurrences(text: str, within: str) -> tuple[Span, ...]:
    """Spans at which a text stands as whole words: inside no longer word or number."""
    return Locator(within).spans(text, Strictness.VERBATIM)


def spans_of(entity: Entity, description: str) -> tuple[Span, ...]:
    """The spans of an entity: those listed, or all its occurrences where none is listed."""
    return entity.spans or occurrences(entity.text, description)


def annotated_spans(sample: Sample) -> frozenset[Span]:
    """Every span of every entity."""
    return frozenset(
        span for entity in sample.entities for span in spans_of(entity, sample.description)
    )


def is_inside(span: Span, spans: Iterable[Span]) -> bool:
    """Whether one of the spans holds all of a span."""
    return any(start <= span[0] and span[1] <= end for start, end in spans)


def is_annotated(span: Span, spans: Iterable[Span]) -> bool:
    """Whether the spans hold all of a span, together."""
    place = span[0]
    for start, end in sorted(spans):
        if start <= place < end:
            place = end
    return place >= span[1]


def blanked(sample: Sample) -> str:
    """The description with every entity replaced by its type, such as `<PER>`.

    Where spans overlap, one placeholder stands for all of them: that of the first, and of
    the longest among those.
    """
    placed = sorted(
        (
            (span, entity.type)
            for entity in sample.entities
            for span in spans_of(entity, sample.description)
        ),
        key=lambda item: (item[0][0], -item[0][1], item[1]),
    )
    parts: list[str] = []
    place = 0
    for (start, end), pii_type in placed:
        if start >= place:
            parts += [sample.description[place:start], f"<{pii_type}>"]
        place = max(place, end)
    return "".join([*parts, sample.description[place:]])
