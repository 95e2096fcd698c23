"""What of a text is masked: the places of entities, without those that must stay."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from pii_bench.check.text import is_inside
from pii_bench.detectors.base import DetectedSpan
from pii_bench.errors import PiiBenchError
from pii_bench.masking.places import Places, Span
from pii_bench.masking.tags import name_of
from pii_bench.scorer import normalise, normalise_type
from pii_bench.taxonomy import PiiType

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Entity: TypeAlias = tuple[str, str] | DetectedSpan
"""A pair (text, type), which is looked for in the text, or a place in it."""

_RANKS: Final = {pii_type.value: rank for rank, pii_type in enumerate(PiiType)}


@dataclass(frozen=True, slots=True)
class Replacement:
    """A piece of the text that a tag stands for: code points, end exclusive.

    Attributes:
        name: that of the tag, see `tags.name_of`.
    """

    start: int
    end: int
    name: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What is replaced.

    Attributes:
        replacements: in order, none overlapping another.
        not_found: texts of entities that stand nowhere in the text, each once, sorted.
    """

    replacements: tuple[Replacement, ...]
    not_found: tuple[str, ...]


@dataclass(frozen=True, slots=True, order=True)
class _Place:
    """A place of a masked entity; the order is that in which places are given away."""

    minus_length: int
    start: int
    rank: int
    type: str

    @classmethod
    def of(cls, span: Span, pii_type: str) -> _Place:
        start, end = span
        return cls(start - end, start, _RANKS.get(pii_type, len(_RANKS)), pii_type)

    @property
    def end(self) -> int:
        return self.start - self.minus_length


def make_plan(
    text: str, entities: Iterable[Entity], keep: Iterable[str], places: Places | None = None
) -> Plan:
    """Tell what of a text is masked: all entities but those whose text is to be kept.

    The order of entities and of kept texts changes nothing. Places are given away like this:

    - A kept text stays wherever it stands, also inside or across a masked entity, with one
      exception: inside a masked entity it stays only if it stands nowhere else. So
      the age 32 does not show two digits of a masked number.
    - Of masked entities that overlap the longest is masked whole; of two of one length the
      earlier, of two at one place the one whose type comes first in the taxonomy.
    - What is left of an entity beside a kept or a longer one is masked as well.

    White space at the ends of a piece stays. A pair stands where `Places` finds it; a span
    stands where it says, also inside a word, and takes the combining marks behind it along.

    Args:
        text: any text.
        entities: what is there to mask.
        keep: texts that stay, compared as the scorer does.
        places: `Places` of the text, which many plans of one text share; None to make it here.

    Raises:
        PiiBenchError: a span that is not in the text, an entity of another kind, or `keep` is
            one string, whose letters would pass as texts.
    """
    if isinstance(keep, str):
        raise PiiBenchError("keep came as one str; allowed: an iterable of str")
    kept = {normalise(each) for each in keep}
    places = Places(text) if places is None else places
    masked: set[_Place] = set()
    not_found: list[str] = []
    for entity in entities:
        written, pii_type, spans = _located(text, places, entity)
        if normalise(written) in kept or not written.strip():
            continue
        masked |= {_Place.of(span, pii_type) for span in spans}
        if not spans:
            not_found.append(written)
    taken = bytearray(len(text))
    for each in kept:
        for start, end in _staying(places.spans(each), masked):
            taken[start:end] = b"\1" * (end - start)
    return Plan(tuple(_give_away(text, masked, taken)), tuple(sorted(set(not_found))))


def _located(text: str, places: Places, entity: Entity) -> tuple[str, str, tuple[Span, ...]]:
    """The text, the type and the places of an entity."""
    if isinstance(entity, DetectedSpan):
        start, end = entity.start, entity.end
        if not 0 <= start <= end <= len(text):
            allowed = f"0 <= start <= end <= {len(text)}"
            raise PiiBenchError(f"a span came from {start} to {end}; allowed: {allowed}")
        while start < end < len(text) and unicodedata.category(text[end]).startswith("M"):
            end += 1
        return text[start:end], normalise_type(entity.type), ((start, end),)
    written, pii_type = _pair(entity)
    return written, normalise_type(pii_type), places.spans(written)


def _pair(entity: object) -> tuple[str, str]:
    # A str of two letters unpacks like a pair, and so do the keys of a dict.
    if not isinstance(entity, (tuple, list)) or len(entity) != 2:
        kind = type(entity).__name__
        raise PiiBenchError(f"an entity came as {kind}; allowed: (text, type) or DetectedSpan")
    return entity[0], entity[1]


def _staying(spans: tuple[Span, ...], masked: Iterable[_Place]) -> tuple[Span, ...]:
    """The places of a kept text at which it stays."""
    entities = [(each.start, each.end) for each in masked]
    return tuple(span for span in spans if not is_inside(span, entities)) or spans


def _give_away(text: str, masked: Iterable[_Place], taken: bytearray) -> list[Replacement]:
    pieces: list[Replacement] = []
    for place in sorted(masked):
        name = name_of(place.type, text[place.start : place.end])
        pieces += [Replacement(*span, name) for span in _free(text, place, taken)]
        taken[place.start : place.end] = b"\1" * (place.end - place.start)
    return sorted(pieces, key=lambda piece: piece.start)


def _free(text: str, place: _Place, taken: bytearray) -> Iterator[Span]:
    """The runs of a place that nobody has yet, without white space at their ends."""
    start = place.start
    while start < place.end:
        if taken[start]:
            start += 1
            continue
        found = taken.find(1, start, place.end)
        end = place.end if found == -1 else found
        piece = text[start:end]
        if not piece.isspace():
            yield start + len(piece) - len(piece.lstrip()), start + len(piece.rstrip())
        start = end
