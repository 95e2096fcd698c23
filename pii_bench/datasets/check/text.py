"""What the checks share: a problem that is found, and where entities are in a description."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from pii_bench.scorer.locate import Strictness, locator_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pii_bench.datasets.sample import Entity, Sample
    from pii_bench.scorer.locate import Span


@dataclass(frozen=True, slots=True)
class Problem:
    """A rule that a sample breaks.

    Attributes:
        sample_id: of the sample; "line N" where a line holds none that can be read.
        rule: name of the rule, lower case with hyphens.
        reason: what breaks it. It may quote the sample.
    """

    sample_id: str
    rule: str
    reason: str


@lru_cache(maxsize=1 << 15)
def occurrences(text: str, within: str) -> tuple[Span, ...]:
    """Spans at which a text occurs as whole words: inside no longer word or number."""
    return locator_of(within).spans(text, Strictness.VERBATIM)


def spans_of(entity: Entity, description: str) -> tuple[Span, ...]:
    """The spans of an entity: those listed, or all its occurrences where none is listed."""
    return entity.spans or occurrences(entity.text, description)


def annotated_spans(sample: Sample) -> frozenset[Span]:
    """Every span of every entity."""
    listed = {span for entity in sample.entities for span in entity.spans}
    unlisted = {entity.text for entity in sample.entities if not entity.spans}
    return frozenset(listed).union(*(occurrences(text, sample.description) for text in unlisted))


class Cover:
    """Spans that are asked about again and again."""

    def __init__(self, spans: Iterable[Span]) -> None:
        self._starts: list[int] = []
        # The furthest end of the spans up to each start, and the end of what they hold together.
        self._single: list[int] = []
        self._together: list[int] = []
        for start, end in sorted(spans):
            self._starts.append(start)
            self._single.append(max(end, self._single[-1]) if self._single else end)
            joins = bool(self._together) and start <= self._together[-1]
            self._together.append(max(end, self._together[-1]) if joins else end)

    def holds(self, span: Span) -> bool:
        """Whether one of the spans holds all of a span."""
        place = bisect_right(self._starts, span[0])
        return place > 0 and self._single[place - 1] >= span[1]

    def covers(self, span: Span) -> bool:
        """Whether the spans hold all of a span together."""
        place = bisect_right(self._starts, span[0])
        if not place or self._together[place - 1] < span[0]:
            return False
        end = self._together[place - 1]
        while end < span[1] and place < len(self._starts) and self._starts[place] <= end:
            end = self._together[place]
            place += 1
        return end >= span[1]


def blanked(sample: Sample) -> str:
    """The description with every entity replaced by its type, such as `<PER>`.

    Where spans overlap, one placeholder replaces all of them: that of the first, and of
    the longest among those.
    """
    annotations = {(entity.text, entity.type, entity.spans): entity for entity in sample.entities}
    placed = sorted(
        (
            (span, entity.type)
            for entity in annotations.values()
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
