"""Helpers of the checks: problems, and occurrences of entities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pii_bench.scorer.locate import Strictness, locator_of

if TYPE_CHECKING:
    from pii_bench.datasets.sample import Entity, Sample
    from pii_bench.scorer.locate import Span


@dataclass(frozen=True, slots=True)
class Problem:
    """A violation of a rule by a sample; the reason may quote it.

    The id is "line N" if the line is no sample.
    """

    sample_id: str
    rule: str
    reason: str


def occurrences(text: str, within: str) -> tuple[Span, ...]:
    """Return the spans where a text occurs as whole words, not inside a longer word or number."""
    return locator_of(within).spans(text, Strictness.VERBATIM)


def listed_spans(entity: Entity) -> tuple[Span, ...]:
    """Return the spans that the file lists."""
    return entity.spans if entity.listed else ()


def verbatim_spans(entity: Entity, description: str) -> tuple[Span, ...]:
    """Return the listed spans of an entity, or else all verbatim occurrences of its text."""
    return listed_spans(entity) or occurrences(entity.text, description)


def annotated_spans(sample: Sample) -> frozenset[Span]:
    """Return the spans of all entities."""
    listed = {span for entity in sample.entities for span in listed_spans(entity)}
    unlisted = {entity.text for entity in sample.entities if not listed_spans(entity)}
    return frozenset(listed).union(*(occurrences(text, sample.description) for text in unlisted))


def blanked(sample: Sample) -> str:
    """Replace every entity of the description by its type, such as `<PER>`.

    Overlapping spans are replaced by one placeholder: that of the first span, or of the longest
    of those that start there.
    """
    annotations = {
        (entity.text, entity.type, listed_spans(entity)): entity for entity in sample.entities
    }
    typed_spans = sorted(
        (
            (span, entity.type)
            for entity in annotations.values()
            for span in verbatim_spans(entity, sample.description)
        ),
        key=lambda item: (item[0][0], -item[0][1], item[1]),
    )
    parts: list[str] = []
    position = 0
    for (start, end), pii_type in typed_spans:
        if start >= position:
            parts += [sample.description[position:start], f"<{pii_type}>"]
        position = max(position, end)
    return "".join([*parts, sample.description[position:]])
