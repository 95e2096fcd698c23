"""Where texts stand in a description."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Final, TypeAlias

from pii_bench.scorer import normalise
from pii_bench.scorer.text import tokens

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pii_bench.datasets.sample import Entity

Span: TypeAlias = tuple[int, int]
"""Code points of a description as it is, end exclusive."""

_WORD: Final = re.compile(r"\S+")


class Description:
    """A description as the scorer normalises it, and the way back to its code points."""

    def __init__(self, text: str) -> None:
        words: list[str] = []
        self._starts: list[int] = []
        self._ends: list[int] = []
        for match in _WORD.finditer(text):
            if words:
                # The one space for what stands between this word and the last.
                self._starts.append(self._ends[-1])
                self._ends.append(match.start())
            words.append(self._append(match.group(), match.start()))
        self.normalised = " ".join(words)
        self._found: dict[str, tuple[Span, ...]] = {}

    def places(self, text: str) -> tuple[Span, ...]:
        """Where a text stands, in order: as whole words or, where it nowhere does, anywhere.

        Texts are compared as the scorer compares them. `3` is not found in `32`, but a word
        that was cut short is found in its word. Places do not overlap.
        """
        wanted = normalise(text)
        if wanted not in self._found:
            found = [*self._find(wanted, whole=True)] or [*self._find(wanted, whole=False)]
            self._found[wanted] = tuple(
                (self._starts[start], self._ends[end - 1]) for start, end in found
            )
        return self._found[wanted]

    def entity_places(self, entity: Entity) -> tuple[Span, ...]:
        """The annotated places of an entity; in foreign data without spans, those of its text."""
        return entity.spans or self.places(entity.text)

    def _append(self, word: str, offset: int) -> str:
        """Note where each character of a word comes from; return the word in NFC."""
        composed = unicodedata.normalize("NFC", word)
        if composed == word:
            self._starts += range(offset, offset + len(word))
            self._ends += range(offset + 1, offset + len(word) + 1)
            return word
        # A prefix has as many characters in NFC as begin in it.
        begun = [len(unicodedata.normalize("NFC", word[:end])) for end in range(len(word) + 1)]
        for index in range(len(composed)):
            inside = [place for place, count in enumerate(begun[1:]) if count == index + 1]
            first, last = (inside[0], inside[-1] + 1) if inside else (0, len(word))
            self._starts.append(offset + first)
            self._ends.append(offset + last)
        return composed

    def _find(self, wanted: str, *, whole: bool) -> Iterator[Span]:
        held = self.normalised
        start = held.find(wanted) if wanted else -1
        while start >= 0:
            end = start + len(wanted)
            cuts = _inside_word(held, start) or _inside_word(held, end)
            if whole and cuts:
                start = held.find(wanted, start + 1)
            else:
                yield start, end
                start = held.find(wanted, end)


def overlap(places: tuple[Span, ...], others: tuple[Span, ...]) -> bool:
    """Whether any place shares a code point with any other."""
    return any(a < d and c < b for a, b in places for c, d in others)


def _inside_word(text: str, place: int) -> bool:
    """Whether a word, as RougeL tokens are words, goes on from before a place to behind it."""
    around = text[place - 1 : place + 1]
    return 0 < place < len(text) and tokens(around) == (around.lower(),)
