"""Texts written less well: pure functions of a text, a draw and a rate.

The rate is the share of letters, words or marks that are changed, of those that could be.
"""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from random import Random

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
