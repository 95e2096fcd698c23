"""The same date, time or number in another format."""

from __future__ import annotations

import datetime as dt
import re
import time
from typing import TYPE_CHECKING, Final

from pii_bench.datasets.check.formats import parse_amount, parse_percentage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from random import Random

_DATES_READ: Final = ("%Y-%m-%d", "%d %B %Y", "%B %d, %Y", "%d %b %Y", "%b %d, %Y", "%d.%m.%Y")
_DATES_WRITTEN: Final[tuple[Callable[[dt.date], str], ...]] = (
    dt.date.isoformat,
    lambda day: f"{day.day} {day:%B} {day.year}",
    lambda day: f"{day:%B} {day.day}, {day.year}",
    lambda day: f"{day:%d.%m.%Y}",
    lambda day: f"{day:%d/%m/%Y}",
    lambda day: f"{day:%Y/%m/%d}",
    lambda day: f"{day:%a} {day.day} {day:%b} {day.year}",
    lambda day: f"{day.day}{_ending(day.day)} of {day:%B} {day.year}",
)
_TIMES_READ: Final = ("%H:%M:%S", "%H:%M", "%I:%M %p", "%I:%M:%S %p", "%I %p")
_TIMES_WRITTEN: Final[tuple[Callable[[dt.time], str], ...]] = (
    lambda at: f"{at:%H:%M:%S}",
    lambda at: f"{at:%H.%M.%S}",
    lambda at: f"{int(f'{at:%I}')}:{at:%M:%S} {at:%p}".lower(),
)
_FULL_MINUTES_WRITTEN: Final[tuple[Callable[[dt.time], str], ...]] = (
    lambda at: f"{at:%H:%M}",
    lambda at: f"{at:%H.%M}",
    lambda at: f"{at:%H}h{at:%M}",
    lambda at: f"{at:%H%M} hrs",
    lambda at: f"{int(f'{at:%I}')}:{at:%M} {at:%p}".lower(),
)
# From the separators of "1,234.50".
_SEPARATORS: Final = tuple(
    str.maketrans(each)
    for each in ({",": ".", ".": ","}, {",": " ", ".": ","}, {",": "'"}, {",": ""})
)
_DIGITS: Final = re.compile(r"(?P<code>\+\d{1,3}[ -])?\(?\d[\d ()-]{6,}\d")


def other_date(text: str, random: Random) -> str:
    """The same day or time in another format; the text itself where it is none that is read."""
    if (day := read_date(text)) is not None:
        return _other(text, (write(day) for write in _DATES_WRITTEN), random)
    if (at := read_time(text)) is not None:
        writers = _TIMES_WRITTEN if at.second else (_TIMES_WRITTEN[0], *_FULL_MINUTES_WRITTEN)
        return _other(text, (write(at) for write in writers), random)
    return text


def other_number(text: str, random: Random) -> str:
    """The same amount, percentage or long number in another format.

    Words and short numbers stay: "five euros", "32".
    """
    if (amount := parse_amount(text)) is not None:
        # "Rs.50" has no cents.
        cents = 2 if re.search(r"(?<=\d)\.\d{1,2}\D*$", text) else 0
        whole = f"{amount.value:,.{cents}f}"
        numbers = [whole.translate(each) for each in _SEPARATORS]
        sign = amount.currency
        forms = [form for n in numbers for form in (f"{n} {sign}", f"{sign} {n}", f"{sign}{n}")]
        return _other(text, forms, random)
    if parse_percentage(text) is not None:
        share = text[:-1]
        comma = share.replace(".", ",")
        return _other(text, (f"{comma} %", f"{comma}%", f"{share} percent"), random)
    found = _DIGITS.fullmatch(text)
    if found is None or read_date(text) is not None:
        return text
    code = (found["code"] or "")[:-1]
    digits = re.sub(r"\D", "", text[len(code) :])
    groups = [
        joint.join(digits[place : place + size] for place in range(0, len(digits), size))
        for size in (2, 3, 4)
        for joint in (" ", ".", "-")
    ]
    return _other(text, (f"{code} {each}".strip() for each in (*groups, digits)), random)


def read_date(text: str) -> dt.date | None:
    """The day of a date in one of the formats that are rewritten; None for other texts."""
    read = _read(text, _DATES_READ)
    return None if read is None else dt.date(*read[:3])


def read_time(text: str) -> dt.time | None:
    """The time of day in one of the formats that are rewritten; None for other texts."""
    read = _read(text.replace("p.m.", "pm").replace("a.m.", "am"), _TIMES_READ)
    return None if read is None else dt.time(*read[3:6])


def _read(text: str, formats: Iterable[str]) -> time.struct_time | None:
    for each in formats:
        try:
            return time.strptime(text, each)
        except ValueError:
            continue
    return None


def _other(text: str, forms: Iterable[str], random: Random) -> str:
    return random.choice(sorted({*forms} - {text}))


def _ending(day: int) -> str:
    return "th" if day in {11, 12, 13} else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")
