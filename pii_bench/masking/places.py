"""Where a text that somebody wrote down stands in another."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

from pii_bench.tagger.tokens import tokenize

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

Span = tuple[int, int]

# The parser takes them out of what a model answers.
_ZERO_WIDTH: Final = {ord(character): None for character in "\u200b\u2060\ufeff"}
# Vowels and final consonants of Hangul, which compose with the letter before them.
_JAMO: Final = ("\u1160", "\u11ff")
# Models write the plain ones.
_PUNCTUATION: Final = str.maketrans("‘’‛′“”‟″‐‑‒–—―−", "''''\"\"\"\"-------")


class Places:
    """Finds texts in a text, in code points, end exclusive.

    Texts are compared as the scorer does: Unicode NFC, every run of white space as one space;
    and zero-width characters left out, for the parser leaves them out. What stands nowhere so
    is looked for without regard to case, typographic quotes and dashes, and compatibility
    forms (NFKC).

    Args:
        text: where to look.
    """

    def __init__(self, text: str) -> None:
        self._text = text

    def spans(self, wanted: str) -> tuple[Span, ...]:
        """Where a text stands as whole words, in order; where it does so nowhere, anywhere.

        So "Ann" is not found in "Annual", unless "Ann" stands nowhere else: a system that
        names it meant something. A word is a run of letters, digits and underscores;
        in scripts without spaces each letter is one (`tagger.tokens`).

        Args:
            wanted: what to look for; a blank text stands nowhere.
        """
        exact = self._exactly.spans(wanted)
        whole = self._whole(exact)
        if whole:
            return whole
        loose = self._loosely.spans(wanted)
        return self._whole(loose) or exact or loose

    @cached_property
    def _exactly(self) -> _Folded:
        return _Folded.of(self._text, _exact)

    @cached_property
    def _loosely(self) -> _Folded:
        return _Folded.of(self._text, _loose)

    @cached_property
    def _inside_words(self) -> frozenset[int]:
        tokens = tokenize(self._text)
        return frozenset(n for token in tokens for n in range(token.start + 1, token.end))

    def _whole(self, spans: tuple[Span, ...]) -> tuple[Span, ...]:
        return tuple(filter(self._inside_words.isdisjoint, spans))


@dataclass(frozen=True, slots=True)
class _Folded:
    """A text in a form in which different writings are equal.

    Attributes:
        form: gives the form of a character.
        text: the forms of all characters.
        edges: place in the form to offset in the text, where a character starts or ends.
    """

    form: Callable[[str], str]
    text: str
    edges: Mapping[int, int]

    @classmethod
    def of(cls, text: str, form: Callable[[str], str]) -> _Folded:
        """Bring a text into a form."""
        pieces: list[str] = []
        edges: dict[int, int] = {}
        length = 0
        for start, end in _characters(text):
            edges[length] = start
            pieces.append(form(text[start:end]))
            length += len(pieces[-1])
        edges[length] = len(text)
        return cls(form, "".join(pieces), edges)

    def spans(self, wanted: str) -> tuple[Span, ...]:
        """Where a text stands, as spans of the original text; they may overlap."""
        return tuple(self._spans(_Folded.of(wanted, self.form).text.strip()))

    def _spans(self, wanted: str) -> Iterator[Span]:
        start = self.text.find(wanted) if wanted else -1
        while start != -1:
            end = start + len(wanted)
            if start in self.edges and end in self.edges:
                yield self.edges[start], self.edges[end]
            start = self.text.find(wanted, start + 1)


def _exact(character: str) -> str:
    if character[0].isspace():
        return " "
    return unicodedata.normalize("NFC", character.translate(_ZERO_WIDTH))


def _loose(character: str) -> str:
    if character[0].isspace():
        return " "
    plain = unicodedata.normalize("NFKC", character.translate(_ZERO_WIDTH))
    return plain.casefold().translate(_PUNCTUATION)


def _characters(text: str) -> Iterator[Span]:
    """Spans of characters with the marks on them, and of runs of white space.

    Zero-width characters stay with what is before them. To bring the pieces into NFC is to
    bring the whole.
    """
    start = 0
    for place in range(1, len(text)):
        if not _continues(text[start], text[place]):
            yield start, place
            start = place
    if text:
        yield start, len(text)


def _continues(first: str, character: str) -> bool:
    if ord(character) in _ZERO_WIDTH:
        return True
    if first.isspace() or character.isspace():
        return first.isspace() and character.isspace()
    return unicodedata.category(character).startswith("M") or _JAMO[0] <= character <= _JAMO[1]
