"""What of a text is masked: the spans of entities, without those that must stay."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from pii_bench.errors import PiiBenchError
from pii_bench.scorer import normalise, normalise_type
from pii_bench.scorer.locate import Claim, DetectedSpan, Locator, locator_of, settle
from pii_bench.taxonomy import PiiType

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

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
