"""Reading the values of entities. Each reader gives None for what is no such value."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum
from typing import Final


@dataclass(frozen=True, slots=True)
class Amount:
    """Money.

    Attributes:
        currency: sign or code, as it is written; amounts of two currencies do not compare.
    """

    currency: str
    value: float


class Rank(IntEnum):
    """What a text says of somebody's schooling, in order."""

    BELOW_DEGREE = 0
    BACHELOR = 1
    MASTER = 2
    DOCTOR = 3


_CODES: Final = (
    "AED|ARS|AUD|BRL|CAD|CHF|CLP|CNY|COP|CZK|DKK|EGP|ETB|EUR|GBP|GHS|HKD|HUF|IDR|ILS|INR|JPY|KES|"
    "KRW|MAD|MXN|MYR|NGN|NOK|NZD|PEN|PHP|PKR|PLN|RON|RUB|SAR|SEK|SGD|THB|TRY|TWD|UAH|UGX|USD|VND|"
    "ZAR|Ksh|KSh|TSh|USh|Rp|Rs\\.?|kr\\.?|zł|Fr\\."
)
_SIGN: Final = r"[$£€¥₣₤₦₩₪₫₱₲₴₵₸₹₺₽]"
# Digits grouped by thousands, or as in India ("1,20,000"), or not at all.
_GROUPED: Final = r"\d{1,3}(?:,\d{2,3})*,\d{3}(?!\d)"
_DIGITS: Final = rf"(?:{_GROUPED}|\d+)(?:\.\d{{1,2}})?(?![\d%])"
# A plain R is a currency only before grouped digits: "R2" is a room.
AMOUNT: Final = re.compile(
    rf"(?<!\w)(?:(?P<before>[A-Z]{{0,3}}{_SIGN}|{_CODES}|R(?= ?{_GROUPED})) ?(?P<first>{_DIGITS})"
    rf"|(?P<second>{_DIGITS}) ?(?P<after>{_SIGN}|(?:{_CODES})(?!\w)))"
)
PERCENTAGE: Final = re.compile(r"[-−+]?\d+\.\d{2}%")

_DURATION: Final = re.compile(
    r"(\d+) ?(?:(d|days?)|(h|hours?)|(m|min|minutes?)|(s|sec|seconds?))", re.ASCII
)
_SECONDS_A_DAY: Final = 86_400
_SECONDS: Final = (_SECONDS_A_DAY, 3_600, 60, 1)

_CENTIMETRES: Final = re.compile(r"(\d{3}) ?cm", re.ASCII)
_FEET: Final = re.compile(r"([2-8])(?:['′’] ?| ?ft ?| feet ?)(\d|1[01])(?:[\"″”]| ?in| inches)?")
_WEIGHT: Final = re.compile(r"(\d{2,3}) ?(?:(kg)|lbs?)", re.ASCII)
_KILOGRAMS_A_POUND: Final = 0.453_592_37
_METRES_AN_INCH: Final = 0.0254

# Abbreviations are told by their capitals ("MA", not the end of "drama").
_RANKS: Final = (
    (
        Rank.DOCTOR,
        re.compile(r"\b(?:Ph\.?D|D\.?Phil|MD|EdD|DSc|DBA|(?i:doctora(?:te|l)|doctor of))\b"),
    ),
    (
        Rank.MASTER,
        re.compile(
            r"\b(?:MSc|MA|MS|MBA|MEng|MPhil|MRes|MEd|MFA|MPH|MPA|MSW|MArch|MMus|LLM"
            r"|(?i:master(?:['’]?s| of)))\b"
        ),
    ),
    (
        Rank.BACHELOR,
        re.compile(
            r"\b(?:BSc|BA|BS|BEng|BEd|BFA|BBA|BCom|BMus|BArch|BTech|BSN|LLB"
            r"|(?i:bachelor(?:['’]?s| of)))\b"
        ),
    ),
    (
        Rank.BELOW_DEGREE,
        re.compile(
            r"\b(?:GCSEs?|GED|A-levels?|O-levels?|(?i:(?:primary|elementary|middle|secondary|high)"
            r" school|vocational|apprenticeship|some college|no (?:formal )?(?:schooling|degree)"
            r"))\b"
        ),
    ),
)


def parse_amount(text: str) -> Amount | None:
    """Read money: "$2,180" is 2180 in "$"."""
    match = AMOUNT.fullmatch(text)
    if match is None:
        return None
    digits = match["first"] or match["second"]
    return Amount(match["before"] or match["after"], float(digits.replace(",", "")))


def parse_percentage(text: str) -> float | None:
    """Read a percentage of two decimals: "6.85%" is 6.85."""
    if PERCENTAGE.fullmatch(text) is None:
        return None
    return float(text[:-1].replace("−", "-"))


def parse_days(text: str) -> float | None:
    """Read a duration in days: "36 hours" is 1.5."""
    match = _DURATION.fullmatch(text)
    if match is None:
        return None
    unit = next(n for n, group in enumerate(match.groups()[1:]) if group)
    return int(match[1]) * _SECONDS[unit] / _SECONDS_A_DAY


def parse_metres(text: str) -> float | None:
    """Read a height in metres, from centimetres or from feet and inches."""
    if match := _CENTIMETRES.fullmatch(text):
        return int(match[1]) / 100
    if match := _FEET.fullmatch(text):
        return (int(match[1]) * 12 + int(match[2])) * _METRES_AN_INCH
    return None


def parse_kilograms(text: str) -> float | None:
    """Read a weight in kilograms, from kilograms or pounds."""
    match = _WEIGHT.fullmatch(text)
    if match is None:
        return None
    return int(match[1]) * (1 if match[2] else _KILOGRAMS_A_POUND)


def parse_rank(text: str) -> Rank | None:
    """Read the highest schooling that a text names; None where it names none that is known."""
    return next((rank for rank, pattern in _RANKS if pattern.search(text)), None)
