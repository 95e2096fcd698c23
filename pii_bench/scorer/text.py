"""Normalisation and tokens of texts."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from enum import Enum, auto
from functools import lru_cache
from itertools import groupby
from typing import TYPE_CHECKING, Final

from pii_bench.errors import PiiBenchError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

NORMALISER = "nfc-ws-1"
"""Version of `normalise` and `normalise_type`, for signatures."""

ROUGE_L_TOKENISER = "rouge-uni-1"
"""Version of `tokens`, for signatures."""

_ONE_CHARACTER_TOKENS = (
    (0x0E00, 0x0E7F),  # Thai
    (0x1100, 0x11FF),  # Hangul jamo
    (0x3000, 0x318F),  # CJK iteration marks and numerals, kana, bopomofo, Hangul letters
    (0x31A0, 0x31BF),  # bopomofo extended
    (0x31F0, 0x31FF),  # small katakana
    (0x3400, 0x4DBF),  # CJK extension A
    (0x4E00, 0x9FFF),  # CJK
    (0xA960, 0xA97F),  # Hangul jamo extended A
    (0xAC00, 0xD7FF),  # Hangul syllables, jamo extended B
    (0xF900, 0xFAFF),  # CJK compatibility ideographs
    (0xFF66, 0xFFDC),  # half-width kana and Hangul
    (0x1AFF0, 0x1B16F),  # kana supplements
    (0x20000, 0x3FFFF),  # planes 2 and 3: CJK extensions B onwards
)
_STANDS_ALONE = re.compile(
    "[" + "".join(f"{chr(first)}-{chr(last)}" for first, last in _ONE_CHARACTER_TOKENS) + "]"
)

# Characters that continue the one before them but are not of category M: the joiners of Indic
# scripts and Persian, and the voiced marks of half-width kana.
_JOINING = frozenset("\u200c\u200d\uff9e\uff9f")

# Shorter texts take Python's quadratic normalisation a few milliseconds at most.
_LONG = 2048


def nfc(text: str) -> str:
    """Normalise to Unicode NFC in linear time.

    `unicodedata` sorts runs of combining marks by insertion and needs ten seconds for 100,000 of
    them. It is fast if the marks are sorted already, and NFC of the canonical decomposition is
    NFC of the text (Unicode Standard Annex 15, section 1.2).
    """
    if len(text) < _LONG or text.isascii():
        return unicodedata.normalize("NFC", text)
    return unicodedata.normalize("NFC", decomposed(text))


def decomposed(text: str) -> str:
    """Normalise to Unicode NFD in linear time."""
    characters = "".join(unicodedata.normalize("NFD", character) for character in text)
    pieces: list[str] = []
    for _, run in groupby(characters, key=lambda c: unicodedata.combining(c) > 0):
        pieces += sorted(run, key=unicodedata.combining)
    return "".join(pieces)


@lru_cache(maxsize=1 << 16)
def normalise(text: str) -> str:
    """Normalise a text for comparison: Unicode NFC, white space folded. Case counts.

    Every run of Unicode white space (by `str.split`) becomes one space, and the ends are stripped.
    """
    return " ".join(nfc(text).split())


def normalise_type(name: str) -> str:
    """Normalise a type for comparison: stripped and upper-cased."""
    return name.strip().upper()


def text_set(texts: Iterable[str]) -> frozenset[str]:
    """Return the set of normalised texts, without blank ones.

    Raises:
        PiiBenchError: `texts` is one string, whose letters would pass as texts.
    """
    if isinstance(texts, str):
        raise PiiBenchError("texts came as one str; allowed: an iterable of str")
    return frozenset(text for text in map(normalise, texts) if text)


def entity_set(entities: Iterable[Sequence[str]]) -> frozenset[tuple[str, str]]:
    """Return the set of normalised (text, type) pairs, without blank texts.

    Raises:
        PiiBenchError: an entity is not a pair.
    """
    pairs = set()
    for entity in entities:
        # A str of two letters or a dict of two keys would unpack like a pair.
        if not isinstance(entity, (tuple, list)) or len(entity) != 2:
            raise PiiBenchError(
                f"an entity came as {type(entity).__name__}; allowed: a pair (text, type)"
            )
        pairs.add((normalise(entity[0]), normalise_type(entity[1])))
    return frozenset(pair for pair in pairs if pair[0])


@lru_cache(maxsize=1 << 16)
def tokens(text: str) -> tuple[str, ...]:
    """Return the tokens of a normalised text, in order.

    A token is a lower-cased run of letters and digits of any script (Unicode categories L and
    N). For ASCII texts these are the tokens of the package rouge-score without its stemmer,
    `[a-z0-9]+`. A combining mark belongs to the letter before it and never splits a word. Each
    Chinese, Japanese, Korean or Thai letter or digit is a token of its own, with its marks.
    """
    characters: list[list[str]] = []
    in_token = in_word = False
    for char in text.lower():
        if char in _JOINING or unicodedata.category(char).startswith("M"):
            if in_token:
                characters[-1].append(char)
            continue
        in_token = char.isalnum()
        extends_word = in_word
        in_word = in_token and not _STANDS_ALONE.match(char)
        if in_word and extends_word:
            characters[-1].append(char)
        elif in_token:
            characters.append([char])
    return tuple(map("".join, characters))


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
    """A token: `text[start:end]` in code points, never empty, without white space."""

    start: int
    end: int


def tokenize(text: str) -> list[Token]:
    """Split a text of any script into tokens, in order.

    A token is a run of letters, digits and underscores; a letter of a script written without
    spaces between words; or any other visible character. Combining marks stay with the
    character before them.
    """
    tokens: list[Token] = []
    start, previous = 0, _Kind.SPACE
    for offset, kind in enumerate(map(_kind, text)):
        if previous is not _Kind.SPACE:
            if kind is _Kind.MARK or (kind is _Kind.WORD and previous is _Kind.WORD):
                continue
            tokens.append(Token(start, offset))
        start, previous = offset, kind
    if previous is not _Kind.SPACE:
        tokens.append(Token(start, len(text)))
    return tokens


@lru_cache(maxsize=1 << 14)
def _kind(character: str) -> _Kind:
    category = unicodedata.category(character)
    # Control and format characters (Cc, Cf) are invisible, but the joiners occur inside words.
    if character in "\u200c\u200d" or category.startswith("M"):
        return _Kind.MARK
    if character.isspace() or category in {"Cc", "Cf"}:
        return _Kind.SPACE
    if not (character.isalnum() or character == "_"):
        return _Kind.ALONE
    unspaced = unicodedata.name(character, "").startswith(_UNSPACED)
    return _Kind.ALONE if unspaced else _Kind.WORD
