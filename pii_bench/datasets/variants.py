"""Variants of samples: the annotated pieces of a text replaced, and text noise."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Final, TypeAlias

from pii_bench.datasets.check.text import occurrences
from pii_bench.datasets.sample import public_texts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from random import Random

    from pii_bench.datasets.sample import Entity, Sample, Subject
    from pii_bench.scorer.locate import Span

AnnotationKey: TypeAlias = tuple[int, int]
"""Indices of subject and entity; for a text of `meta.public`, -1 and its index."""

_PUBLIC = -1


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of a text in which no annotation begins or ends.

    `inside` are the keys of the annotations that contain it; it is `whole` if each of these
    consists of this piece only.
    """

    text: str
    inside: tuple[AnnotationKey, ...]
    whole: bool


@dataclass(frozen=True, slots=True)
class CutSample:
    """A sample cut into pieces.

    Attributes:
        spans: spans of each annotation; empty if the text does not contain it.
        edges: offsets where the pieces begin, and the end of the text.
    """

    sample: Sample
    spans: Mapping[AnnotationKey, tuple[Span, ...]]
    edges: tuple[int, ...]
    pieces: tuple[Piece, ...]

    def entity(self, piece: Piece) -> Entity | None:
        """Return the first entity that contains a piece; None if there is none."""
        for subject, entity in piece.inside:
            if subject != _PUBLIC:
                return self.sample.subjects[subject].entities[entity]
        return None

    def with_texts(self, texts: Sequence[str]) -> Sample | None:
        """Return the sample with another text for each piece, and its annotations moved along.

        Entities, related entities and `meta.public` get the new texts of their spans. The query
        stays. None if an annotation would be blank, or have different texts at its spans.
        """
        ends = accumulate(map(len, texts), initial=0)
        moved = dict(zip(self.edges, ends, strict=True))
        description = "".join(texts)
        new_spans = {
            key: tuple((moved[start], moved[end]) for start, end in spans)
            for key, spans in self.spans.items()
        }
        new_texts: dict[AnnotationKey, str] = {}
        for key, spans in new_spans.items():
            distinct = {description[start:end] for start, end in spans}
            if len(distinct) > 1:
                return None
            for text in distinct:
                if not text.strip():
                    return None
                new_texts[key] = text
        return self._rebuilt(description, new_spans, new_texts)

    def _rebuilt(
        self,
        description: str,
        spans: Mapping[AnnotationKey, tuple[Span, ...]],
        texts: Mapping[AnnotationKey, str],
    ) -> Sample:
        subjects: list[Subject] = []
        new_text: dict[tuple[str, str], str] = {}
        for i, subject in enumerate(self.sample.subjects):
            entities: list[Entity] = []
            for j, entity in enumerate(subject.entities):
                text = texts.get((i, j), entity.text)
                entities.append(replace(entity, text=text, spans=spans[i, j], listed=True))
                new_text[subject.id, entity.text] = text
            subjects.append(replace(subject, entities=tuple(entities)))
        related = tuple(
            replace(entity, text=new_text[entity.subject, entity.text])
            for entity in self.sample.related
        )
        meta = dict(self.sample.meta)
        if public := public_texts(self.sample):
            meta["public"] = [texts.get((_PUBLIC, i), text) for i, text in enumerate(public)]
        return replace(
            self.sample,
            description=description,
            subjects=tuple(subjects),
            related=related,
            meta=meta,
        )


def cut(sample: Sample, *, public: bool = False) -> CutSample:
    """Cut a sample at the ends of all annotations, with `public` also of texts of `meta.public`."""
    text = sample.description
    spans = {
        (i, j): tuple(dict.fromkeys(entity.spans))
        for i, subject in enumerate(sample.subjects)
        for j, entity in enumerate(subject.entities)
    }
    if public:
        for i, value in enumerate(public_texts(sample)):
            spans[_PUBLIC, i] = occurrences(value, text)
    ends = {end for own in spans.values() for span in own for end in span}
    edges = sorted({0, len(text), *ends})
    pieces = []
    for start, end in pairwise(edges):
        around = [
            (key, span)
            for key, own in spans.items()
            for span in own
            if span[0] <= start and end <= span[1]
        ]
        inside = tuple(key for key, _ in around)
        whole = all(span == (start, end) for _, span in around)
        pieces.append(Piece(text[start:end], inside, whole))
    return CutSample(sample, spans, tuple(edges), tuple(pieces))


_ROWS: Final = ("qwertyuiop", "asdfghjkl", "zxcvbnm")

MISREAD: Final[Mapping[str, str]] = {
    "l": "1",
    "o": "0",
    "rn": "m",
    "m": "rn",
    "e": "c",
    "I": "l",
    "S": "5",
}
"""Letters and what a scanner misreads them as."""

MISREAD_DIGITS: Final[Mapping[str, str]] = {
    **MISREAD,
    "0": "O",
    "1": "l",
    "5": "S",
    "6": "b",
    "8": "B",
}
"""Letters and digits, and what a scanner misreads them as."""


def with_typos(text: str, random: Random, rate: float) -> str:
    """Replace letters by neighbouring keys, swap letters, and leave letters out."""
    typed: list[str] = []
    i = 0
    while i < len(text):
        letter = text[i]
        following = text[i + 1 : i + 2]
        if not letter.isalpha() or random.random() >= rate:
            typed.append(letter)
        else:
            kind = random.randrange(3)
            if kind == 0:
                typed.append(_neighbouring_key(letter, random))
            elif kind == 1 and following.isalpha():
                typed += [following, letter]
                i += 1
        i += 1
    return "".join(typed)


def misread(
    text: str, random: Random, rate: float, table: Mapping[str, str] = MISREAD_DIGITS
) -> str:
    """Misread characters like a scanner."""
    return _replace_some("|".join(table), lambda characters: table[characters], text, random, rate)


def without_punctuation(text: str, random: Random, rate: float) -> str:
    """Remove punctuation at the ends of words."""
    return _replace_some(r"[,;:!?.]+(?=\s)", lambda _: "", text, random, rate)


def in_small_letters(text: str, random: Random, rate: float) -> str:
    """Write words in lower case."""
    return _replace_some(r"\S+", str.lower, text, random, rate)


def in_capitals(text: str, random: Random, rate: float) -> str:
    """Write words in upper case."""
    return _replace_some(r"\S+", str.upper, text, random, rate)


def _replace_some(
    pattern: str, change: Callable[[str], str], text: str, random: Random, rate: float
) -> str:
    def replacement(match: re.Match[str]) -> str:
        return change(match[0]) if rate >= 1 or random.random() < rate else match[0]

    return re.sub(pattern, replacement, text)


def _neighbouring_key(letter: str, random: Random) -> str:
    for row in _ROWS:
        i = row.find(letter.lower())
        if i >= 0:
            neighbour = max(i + random.choice((-1, 1)), 0)
            return row[neighbour] if neighbour < len(row) else letter
    return letter
