"""Tokens of a text, with their offsets."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from enum import Enum, auto
from functools import lru_cache
from typing import Final

# Scripts written without spaces between words, or whose particles follow a name unspaced.
_UNSPACED: Final = (
    "CJK", "HIRAGANA", "KATAKANA", "HALFWIDTH KATAKANA", "HANGUL", "THAI", "LAO", "KHMER", "MYANMAR"
)  # fmt: skip


class _Kind(Enum):
    SPACE = auto()
    WORD = auto()
    MARK = auto()
    ALONE = auto()


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of a text: `text[start:end]` in code points, never empty, without white space."""

    start: int
    end: int


def tokenize(text: str) -> list[Token]:
    """Split a text of any script into tokens, in order.

    A token is a run of letters, digits and underscores; a letter of a script that does not
    part its words by spaces; or any other visible character. Combining marks stay with the
    character before them.
    """
    tokens: list[Token] = []
    start, before = 0, _Kind.SPACE
    for place, kind in enumerate(map(_kind, text)):
        if before is not _Kind.SPACE:
            if kind is _Kind.MARK or kind is before is _Kind.WORD:
                continue
            tokens.append(Token(start, place))
        start, before = place, kind
    if before is not _Kind.SPACE:
        tokens.append(Token(start, len(text)))
    return tokens


@lru_cache(maxsize=1 << 14)
def _kind(character: str) -> _Kind:
    category = unicodedata.category(character)
    # Format and control characters show nothing; the joiners (Cf) stand inside words.
    if character in "\u200c\u200d" or category.startswith("M"):
        return _Kind.MARK
    if character.isspace() or category in {"Cc", "Cf"}:
        return _Kind.SPACE
    if not (character.isalnum() or character == "_"):
        return _Kind.ALONE
    unspaced = unicodedata.name(character, "").startswith(_UNSPACED)
    return _Kind.ALONE if unspaced else _Kind.WORD
