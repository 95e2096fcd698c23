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
    return frozenset(
        span for entity in sample.entities for span in verbatim_spans(entity, sample.description)
    )


def blanked(sample: Sample) -> str:
    """Replace every entity of the description by its type, such as `<PER>`.

    Overlapping spans are replaced by one placeholder: that of the first span, or of the longest
    of those that start there.
    """
    typed_spans = {
        (start, end, entity.type)
        for entity in sample.entities
        for start, end in verbatim_spans(entity, sample.description)
    }
    parts: list[str] = []
    position = 0
    ordered = sorted(typed_spans, key=lambda item: (item[0], -item[1], item[2]))
    for start, end, pii_type in ordered:
        if start >= position:
            parts += [sample.description[position:start], f"<{pii_type}>"]
        position = max(position, end)
    return "".join([*parts, sample.description[position:]])
