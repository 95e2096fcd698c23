"""Whether annotations are exact and complete."""

from __future__ import annotations

import heapq
from itertools import groupby
from typing import TYPE_CHECKING

from pii_bench.datasets.check.problem import Problem
from pii_bench.datasets.check.text import Cover, annotated_spans, occurrences, spans_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pii_bench.datasets.sample import Entity, Sample
    from pii_bench.scorer.locate import Span


def span_problems(sample: Sample) -> Iterator[Problem]:
    """What is wrong with the annotations of a sample.

    Rules: `span-exact`, a span holds its entity's text, once; `span-complete`, an entity
    is in the description, and each of its occurrences as whole words lies inside an
    annotated span; `span-overlap`, of two spans that overlap one holds the other (of several
    that a span overlaps one is named);
    `entity-repeated`, a subject has an entity of one text and type once.
    """
    for entity in sample.entities:
        yield from _exact(sample, entity)
    yield from _complete(sample)
    for first, second in _crossing(annotated_spans(sample)):
        texts = " and ".join(repr(sample.description[s:e]) for s, e in (first, second))
        yield Problem(sample.id, "span-overlap", f"{texts} overlap at {second[0]}")
    for subject in sample.subjects:
        seen: set[tuple[str, str]] = set()
        for entity in subject.entities:
            if (key := (entity.text, entity.type)) in seen:
                reason = f"subject {subject.id} has {entity.text!r} twice as {entity.type}"
                yield Problem(sample.id, "entity-repeated", reason)
            seen.add(key)


def _exact(sample: Sample, entity: Entity) -> Iterator[Problem]:
    seen: set[Span] = set()
    for start, end in entity.spans:
        if start < 0 or sample.description[start:end] != entity.text:
            reason = f"[{start}, {end}] does not hold {entity.text!r}"
            yield Problem(sample.id, "span-exact", reason)
        if (start, end) in seen:
            reason = f"[{start}, {end}] of {entity.text!r} is listed twice"
            yield Problem(sample.id, "span-exact", reason)
        seen.add((start, end))


def _complete(sample: Sample) -> Iterator[Problem]:
    annotated = Cover(annotated_spans(sample))
    texts = dict.fromkeys(entity.text for entity in sample.entities)
    for entity in {(each.text, not each.spans): each for each in sample.entities}.values():
        if not spans_of(entity, sample.description):
            yield Problem(sample.id, "span-complete", f"{entity.text!r} is nowhere in the text")
    for text in texts:
        for start, end in occurrences(text, sample.description):
            if not annotated.holds((start, end)):
                reason = f"{text!r} at [{start}, {end}] is not annotated"
                yield Problem(sample.id, "span-complete", reason)


def _crossing(spans: Iterable[Span]) -> Iterator[tuple[Span, Span]]:
    """For each span that begins inside another and ends behind it, both, the other one first."""
    opened: list[tuple[int, int]] = []
    for start, group in groupby(sorted(spans), key=lambda span: span[0]):
        begun = list(group)
        while opened and opened[0][0] <= start:
            heapq.heappop(opened)
        for _, end in begun:
            if opened and opened[0][0] < end:
                first_end, first_start = opened[0]
                yield (first_start, first_end), (start, end)
        for _, end in begun:
            heapq.heappush(opened, (end, start))
