"""Codes whose form alone says what they are: what rules find more surely than a network."""

from __future__ import annotations

import ipaddress
import re
from typing import TYPE_CHECKING, Final

from pii_bench.taxonomy import PiiType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Span = tuple[int, int, PiiType]


def _is_ip_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return any(map(str.isalnum, text))


def _is_card(text: str) -> bool:
    """Whether the last digit is right by Luhn's formula (ISO/IEC 7812-1)."""
    digits = [int(character) for character in text if character.isdecimal()]
    doubled = [d if place % 2 == 0 else 2 * d for place, d in enumerate(reversed(digits))]
    return sum(d - 9 if d > 9 else d for d in doubled) % 10 == 0


def _is_iban(text: str) -> bool:
    """Whether the check digits are right (ISO 13616)."""
    bare = text.replace(" ", "")
    return int("".join(str(int(c, 36)) for c in bare[4:] + bare[:4])) % 97 == 1


def _always(_: str) -> bool:
    return True


_FORMS: Final[tuple[tuple[re.Pattern[str], PiiType, Callable[[str], bool]], ...]] = (
    (
        re.compile(r"[\w.%+-]*\w@\w[\w-]*(?:\.[\w-]*\w)+"),
        PiiType.CODE,
        _always,
    ),
    (re.compile(r"(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?!\.?\d)"), PiiType.CODE, _is_ip_address),
    (
        re.compile(r"(?<![\w:])(?:[0-9A-Fa-f]{0,4}:){2,7}[0-9A-Fa-f]{0,4}(?![\w:])"),
        PiiType.CODE,
        lambda text: _is_ip_address(text) and len(text) > len("1:2:3:4"),
    ),
    (re.compile(r"(?<!\w)[0-9a-f]{32,128}(?!\w)", re.IGNORECASE), PiiType.CODE, _always),
    (
        re.compile(r"(?<!\w)[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?(?!\w)"),
        PiiType.CODE,
        _is_iban,
    ),
    (re.compile(r"(?<![\w-])\d{4}([ -]?)\d{4}\1\d{4}\1\d{4}(?![\w-])"), PiiType.CODE, _is_card),
    (re.compile(r"(?<![\w+])\+\d{1,3}(?:[ .()-]{0,2}\d){7,12}(?!\w)"), PiiType.CODE, _always),
    (re.compile(r"(?<![\w-])\d{3}-\d{2}-\d{4}(?![\w-])"), PiiType.CODE, _always),
)


def fixed_forms(text: str) -> Iterator[Span]:
    """E-mail and IP addresses, hashes, IBANs, card, phone and social security numbers."""
    for pattern, pii_type, holds in _FORMS:
        for match in pattern.finditer(text):
            if holds(match[0]):
                yield match.start(), match.end(), pii_type


def with_fixed_forms(text: str, spans: Sequence[Span]) -> list[Span]:
    """Spans of a text, in order, where what a rule finds takes the place of what overlaps it."""
    fixed: list[Span] = []
    for found in fixed_forms(text):
        if not any(_overlap(found, other) for other in fixed):
            fixed.append(found)
    kept = [span for span in spans if not any(_overlap(span, other) for other in fixed)]
    return sorted([*kept, *fixed])


def _overlap(one: Span, other: Span) -> bool:
    return one[0] < other[1] and other[0] < one[1]
