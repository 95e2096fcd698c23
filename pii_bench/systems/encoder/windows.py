"""Split texts into overlapping windows of subwords, each preceded by the query."""

from __future__ import annotations

import re
from array import array
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pii_bench.systems.detectors import encodable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tokenizers import Tokenizer

MAX_TOKENS: Final = 512
"""Subwords of a window, query and separators included."""

SPELLED: Final = 512
"""Size of the character vocabulary: code points are taken modulo this minus 1; 0 is padding."""

_SPELLED_CHARACTERS: Final = 16
_OVERLAP: Final = 64
# Longer queries are truncated, to leave room for the text.
_QUERY_TOKENS: Final = 256
# Code points tokenized at once: an encoding needs a hundred times the memory of its text.
_PIECE: Final = 20_000
_SPACE: Final = re.compile(r"[ \t\n\r]")


@dataclass(frozen=True, slots=True)
class Window:
    """Part of a text with the query: `[CLS] query [SEP] text [SEP]`.

    Attributes:
        ids: ids of all subwords.
        types: token types, 0 up to the text and 1 from there.
        first: index in `ids` of the text's first subword.
        offsets: (start, end) in code points of each subword of the text.
        opens: whether each subword of the text begins a word.
        core: range of the text's subwords whose labels are taken from this window: in an overlap
            of two windows, each subword belongs to the one in which it has more context.
        spelled: word that each subword of the text begins; empty for the others.
    """

    ids: tuple[int, ...]
    types: tuple[int, ...]
    first: int
    offsets: tuple[tuple[int, int], ...]
    opens: tuple[bool, ...]
    core: tuple[int, int]
    spelled: tuple[str, ...] = ()


class Windows:
    """The windows of a text, built one at a time to save memory.

    Args:
        text: text to split.
        subwords: subwords of the text.
        head: ids before the text in every window.
        tail: ids after it.
        room: number of the text's subwords in a window.
    """

    def __init__(
        self, text: str, subwords: _Subwords, head: Sequence[int], tail: Sequence[int], room: int
    ) -> None:
        self._text = text
        self._subwords = subwords
        self._head = head
        self._tail = tail
        self._cuts = _cuts(len(subwords.ids), room)

    def __len__(self) -> int:
        return len(self._cuts)

    def __iter__(self) -> Iterator[Window]:
        subwords, first = self._subwords, len(self._head)
        for start, end, core in self._cuts:
            ids = (*self._head, *subwords.ids[start:end], *self._tail)
            opens = tuple(map(bool, subwords.opens[start:end]))
            words = zip(subwords.starts[start:end], subwords.words[start:end], strict=True)
            yield Window(
                ids=ids,
                types=(0,) * first + (1,) * (len(ids) - first),
                first=first,
                offsets=tuple(
                    zip(subwords.starts[start:end], subwords.ends[start:end], strict=True)
                ),
                opens=opens,
                core=core,
                spelled=tuple(
                    self._text[slice(*word)] if opening else ""
                    for word, opening in zip(words, opens, strict=True)
                ),
            )


@dataclass(frozen=True, slots=True)
class _Subwords:
    """The subwords of a text, in compact arrays.

    Attributes:
        ids: ids in the vocabulary.
        starts: starts in code points of the text.
        ends: ends, likewise.
        opens: whether each subword begins a word.
        words: end of the word that each subword is in.
    """

    ids: array[int] = field(default_factory=lambda: array("I"))
    starts: array[int] = field(default_factory=lambda: array("I"))
    ends: array[int] = field(default_factory=lambda: array("I"))
    opens: bytearray = field(default_factory=bytearray)
    words: array[int] = field(default_factory=lambda: array("I"))

    @classmethod
    def of(cls, tokenizer: Tokenizer, text: str) -> _Subwords:
        subwords = cls()
        for shift, piece in _pieces(text):
            encoding = tokenizer.encode(piece, add_special_tokens=False)
            word_ids, offsets = encoding.word_ids, encoding.offsets
            last = {word: end for word, (_, end) in zip(word_ids, offsets, strict=True)}
            subwords.ids.extend(encoding.ids)
            subwords.starts.extend(shift + start for start, _ in offsets)
            subwords.ends.extend(shift + end for _, end in offsets)
            subwords.opens.extend(
                place == 0 or word != word_ids[place - 1] for place, word in enumerate(word_ids)
            )
            subwords.words.extend(shift + last[word] for word in word_ids)
        return subwords


def _pieces(text: str) -> Iterator[tuple[int, str]]:
    """Split a text at white space; yield the start and text of each piece."""
    start = 0
    while start < len(text):
        space = _SPACE.search(text, start + _PIECE)
        end = space.start() if space else len(text)
        yield start, text[start:end]
        start = end


def windows_of(
    tokenizer: Tokenizer, text: str, query: str = "", max_tokens: int = MAX_TOKENS
) -> Windows:
    """Split a text into windows; a text without subwords has none.

    Lone surrogates, which tokenizers refuse, count as U+FFFD.

    Args:
        tokenizer: tokenizer of the encoder.
        text: text to split.
        query: question about the text, or empty.
        max_tokens: subwords of a window, more than those of the query and the overlap.
    """
    text, query = encodable(text), encodable(query)
    opening, between = _marks(tokenizer)
    asked = tokenizer.encode(query, add_special_tokens=False).ids[:_QUERY_TOKENS]
    head = [*opening, *asked, *between]
    room = max_tokens - len(head) - len(between)
    return Windows(text, _Subwords.of(tokenizer, text), head, between, room)


def _marks(tokenizer: Tokenizer) -> tuple[list[int], list[int]]:
    """Return the id that opens a window, and the one after its query and after its text."""
    opening = [tokenizer.token_to_id(name) for name in ("[CLS]", "<s>", "<|im_start|>")]
    between = [tokenizer.token_to_id(name) for name in ("[SEP]", "</s>", "<|im_end|>")]
    return [t for t in opening if t is not None][:1], [t for t in between if t is not None][:1]


def spelled_of(windows: Sequence[Window]) -> list[list[list[int]]]:
    """Return character ids of words, (windows, subwords, characters), padded with 0."""
    longest = max(len(window.ids) for window in windows)
    blank = [0] * _SPELLED_CHARACTERS
    table = []
    for window in windows:
        rows = [blank] * window.first
        rows += [_numbers(word) for word in window.spelled]
        rows += [blank] * (longest - len(rows))
        table.append(rows)
    return table


def _numbers(word: str) -> list[int]:
    numbers = [1 + ord(character) % (SPELLED - 1) for character in word[:_SPELLED_CHARACTERS]]
    return [*numbers, *([0] * (_SPELLED_CHARACTERS - len(numbers)))]


def _cuts(count: int, room: int) -> list[tuple[int, int, tuple[int, int]]]:
    """Return start and end of each window among `count` subwords, and its core from its start."""
    starts = [*range(0, max(count - _OVERLAP, 1), room - _OVERLAP)] if count else []
    cuts = []
    for number, start in enumerate(starts):
        end = min(start + room, count)
        low = 0 if number == 0 else _OVERLAP // 2
        high = end - start if number == len(starts) - 1 else room - _OVERLAP // 2
        cuts.append((start, end, (low, high)))
    return cuts


def subwords_of(window: Window, start: int, end: int) -> tuple[int, int] | None:
    """Return the range of a window's subwords that overlap a span of the text, or None."""
    touched = [
        place
        for place, (first, last) in enumerate(window.offsets)
        if first < end and last > start and last > first
    ]
    return (touched[0], touched[-1] + 1) if touched else None


def padded(rows: Sequence[Sequence[int]], value: int = 0) -> list[list[int]]:
    """Pad rows to the length of the longest."""
    longest = max(map(len, rows))
    return [[*row, *([value] * (longest - len(row)))] for row in rows]
