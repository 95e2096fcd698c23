"""Split texts into overlapping windows of subwords, each preceded by the query."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pii_bench.files import encodable_in_place

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tokenizers import Tokenizer

MAX_TOKENS: Final = 512
"""Subwords of a window, query and separators included."""

SPELLED: Final = 512
"""Size of the character vocabulary: code points are taken modulo this minus 1; 0 is padding."""

_SPELLED_CHARACTERS: Final = 16
_OVERLAP: Final = 64
# Longer queries are truncated, to leave room for the text.
_QUERY_TOKENS: Final = 256
# Emoji, arrows, circled numbers and other pictures, with what joins or varies emoji, such as
# U+FE0F. U+200D by itself belongs to letters of Indic scripts and Persian. The vocabulary has the
# arrows before U+2194.
_PICTURE: Final = re.compile(
    "[\u2139\u2194-\u21ff\u2300-\u23ff\u2460-\u2473\u24c2\u2500-\u27bf\u2900-\u297f"
    "\u2b00-\u2bff\u3297\u3299\U0001f000-\U0001faff][\u200d\ufe0f]*|\ufe0f?\u20e3"
)


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
    spelled: tuple[str, ...]


def windows_of(
    tokenizer: Tokenizer, text: str, query: str = "", max_tokens: int = MAX_TOKENS
) -> list[Window]:
    """Split a text into windows; a text without subwords has none.

    Lone surrogates, which tokenizers refuse, count as U+FFFD. Emoji count as spaces, because the
    tokenizer makes one unknown word of an emoji and the word next to it.
    """
    text, query = _tokenizable(text), _tokenizable(query)
    opening = _first_known(tokenizer, "[CLS]", "<s>", "<|im_start|>")
    # After the query and after the text.
    between = _first_known(tokenizer, "[SEP]", "</s>", "<|im_end|>")
    asked = tokenizer.encode(query, add_special_tokens=False).ids[:_QUERY_TOKENS]
    head = (*opening, *asked, *between)
    encoding = tokenizer.encode(text, add_special_tokens=False)
    ids, offsets, word_ids = encoding.ids, encoding.offsets, encoding.word_ids
    ends = {word: end for word, (_, end) in zip(word_ids, offsets, strict=True)}
    opens = [place == 0 or word != word_ids[place - 1] for place, word in enumerate(word_ids)]
    spelled = [
        text[start : ends[word]] if opens_word else ""
        for word, (start, _), opens_word in zip(word_ids, offsets, opens, strict=True)
    ]
    windows = []
    for start, end, core in _cuts(len(ids), max_tokens - len(head) - len(between)):
        own = (*head, *ids[start:end], *between)
        windows.append(
            Window(
                ids=own,
                types=(0,) * len(head) + (1,) * (len(own) - len(head)),
                first=len(head),
                offsets=tuple(offsets[start:end]),
                opens=tuple(opens[start:end]),
                core=core,
                spelled=tuple(spelled[start:end]),
            )
        )
    return windows


def pictures(text: str) -> list[str]:
    """Return the emoji and other pictures of a text, which count as spaces."""
    return _PICTURE.findall(text)


def _tokenizable(text: str) -> str:
    return _PICTURE.sub(lambda match: " " * len(match[0]), encodable_in_place(text))


def _first_known(tokenizer: Tokenizer, *names: str) -> list[int]:
    """Return the id of the first of the names that the tokenizer has, if it has any."""
    ids = [tokenizer.token_to_id(name) for name in names]
    return [number for number in ids if number is not None][:1]


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
