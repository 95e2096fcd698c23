"""Other versions of samples and texts: annotated pieces put together anew, and noise."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias

from pii_bench.datasets.check.text import occurrences, spans_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from random import Random

    from pii_bench.datasets.sample import Entity, Sample
    from pii_bench.scorer.locate import Span

Place: TypeAlias = tuple[int, int]
"""Of an annotation: the subject's place and the entity's; -1 and the place in `meta.public`."""

_PUBLIC = -1


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of a text in which no annotation begins or ends.

    Attributes:
        text: as it is written.
        inside: the annotations that it is part of; empty between them.
        whole: whether it is all of each of them.
    """

    text: str
    inside: tuple[Place, ...]
    whole: bool


@dataclass(frozen=True, slots=True)
class CutSample:
    """A sample and its pieces.

    Attributes:
        spans: of each annotation; of one that the text does not hold, none.
        edges: where the pieces begin, and the end of the last.
    """

    sample: Sample
    spans: Mapping[Place, tuple[Span, ...]]
    edges: tuple[int, ...]
    pieces: tuple[Piece, ...]

    def entity(self, piece: Piece) -> Entity | None:
        """The first entity that a piece is part of; None where it is part of none."""
        return next(
            (
                self.sample.subjects[subject].entities[entity]
                for subject, entity in piece.inside
                if subject != _PUBLIC
            ),
            None,
        )

    def with_texts(self, texts: Sequence[str]) -> Sample | None:
        """The sample with another text for each piece, its annotations carried along.

        Entities, needs and `meta.public` hold the new texts of their spans. The query stays. None
        where an annotation would be empty, or be one text here and another there.
        """
        ends = accumulate(map(len, texts), initial=0)
        moved = dict(zip(self.edges, ends, strict=True))
        description = "".join(texts)
        spans = {
            place: tuple((moved[start], moved[end]) for start, end in own)
            for place, own in self.spans.items()
        }
        held = {
            place: {description[start:end] for start, end in own}
            for place, own in spans.items()
            if own
        }
        if any(len(found) > 1 or not min(found).strip() for found in held.values()):
            return None
        return self._rebuilt(description, spans, {p: min(t) for p, t in held.items()})

    def _rebuilt(
        self,
        description: str,
        spans: Mapping[Place, tuple[Span, ...]],
        texts: Mapping[Place, str],
    ) -> Sample:
        subjects = tuple(
            replace(
                subject,
                entities=tuple(
                    replace(
                        entity,
                        text=texts.get((number, place), entity.text),
                        spans=spans[number, place],
                    )
                    for place, entity in enumerate(subject.entities)
                ),
            )
            for number, subject in enumerate(self.sample.subjects)
        )
        renamed = {
            (old.id, before.text): after.text
            for old, new in zip(self.sample.subjects, subjects, strict=True)
            for before, after in zip(old.entities, new.entities, strict=True)
        }
        related = tuple(
            replace(need, text=renamed[need.subject, need.text]) for need in self.sample.related
        )
        meta = dict(self.sample.meta)
        if public := _public(self.sample):
            meta["public"] = [texts.get((_PUBLIC, n), value) for n, value in enumerate(public)]
        return replace(
            self.sample, description=description, subjects=subjects, related=related, meta=meta
        )


def cut(sample: Sample, *, public: bool = False) -> CutSample:
    """Cut a sample at every end of its annotations.

    Args:
        sample: entities without spans are where their texts are, as for the checker.
        public: whether to cut around what `meta.public` lists too.
    """
    text = sample.description
    spans = {
        (number, place): tuple(dict.fromkeys(spans_of(entity, text)))
        for number, subject in enumerate(sample.subjects)
        for place, entity in enumerate(subject.entities)
    }
    if public:
        spans |= {
            (_PUBLIC, place): occurrences(value, text) if value else ()
            for place, value in enumerate(_public(sample))
        }
    ends = {end for own in spans.values() for span in own for end in span}
    edges = sorted({0, len(text), *ends})
    number_of = {edge: number for number, edge in enumerate(edges)}
    inside: dict[int, list[tuple[Place, Span]]] = {}
    for place, own in spans.items():
        for start, end in own:
            for edge in edges[number_of[start] : number_of[end]]:
                inside.setdefault(edge, []).append((place, (start, end)))
    pieces = tuple(
        Piece(
            text[start:end],
            tuple(place for place, _ in inside.get(start, ())),
            all(span == (start, end) for _, span in inside.get(start, ())),
        )
        for start, end in pairwise(edges)
    )
    return CutSample(sample, spans, tuple(edges), pieces)


def _public(sample: Sample) -> list[str]:
    public = sample.meta.get("public")
    return [each for each in public if isinstance(each, str)] if isinstance(public, list) else []


_ROWS: Final = ("qwertyuiop", "asdfghjkl", "zxcvbnm")

MISREAD: Final[Mapping[str, str]] = MappingProxyType(
    {"l": "1", "o": "0", "rn": "m", "m": "rn", "e": "c", "I": "l", "S": "5"}
)
"""What a scanner takes letters for."""

MISREAD_DIGITS: Final[Mapping[str, str]] = MappingProxyType(
    {**MISREAD, "0": "O", "1": "l", "5": "S", "6": "b", "8": "B"}
)
"""Likewise, and digits."""


def with_typos(text: str, random: Random, rate: float) -> str:
    """Neighbouring keys, swapped and missing letters."""
    told = []
    letters = list(text)
    place = 0
    while place < len(letters):
        letter = letters[place]
        following = letters[place + 1] if place + 1 < len(letters) else ""
        if not letter.isalpha() or random.random() >= rate:
            told.append(letter)
        elif (fault := random.randrange(3)) == 0:
            told.append(_neighbour(letter, random))
        elif fault == 1 and following.isalpha():
            told += [following, letter]
            place += 1
        place += 1
    return "".join(told)


def misread(
    text: str, random: Random, rate: float, table: Mapping[str, str] = MISREAD_DIGITS
) -> str:
    """What is misread when a page is scanned."""
    return _replaced("|".join(table), lambda found: table[found], text, random, rate)


def without_punctuation(text: str, random: Random, rate: float) -> str:
    """Without the marks that end words."""
    return _replaced(r"[,;:!?.]+(?=\s)", lambda _: "", text, random, rate)


def in_small_letters(text: str, random: Random, rate: float) -> str:
    """Words without capitals."""
    return _replaced(r"\S+", str.lower, text, random, rate)


def in_capitals(text: str, random: Random, rate: float) -> str:
    """Words in capitals alone."""
    return _replaced(r"\S+", str.upper, text, random, rate)


def _replaced(
    pattern: str, other: Callable[[str], str], text: str, random: Random, rate: float
) -> str:
    def told(found: re.Match[str]) -> str:
        return other(found[0]) if rate >= 1 or random.random() < rate else found[0]

    return re.sub(pattern, told, text)


def _neighbour(letter: str, random: Random) -> str:
    for row in _ROWS:
        place = row.find(letter.lower())
        if place >= 0:
            return row[max(place + random.choice((-1, 1)), 0) :][:1] or letter
    return letter
