"""Where a span begins and ends: whole dates, whole numbers, no stray punctuation.

A network labels word by word, so that it may take a part of a date ("July" of "3 July 2001") or of
a reference ("22072" of "22072/02"), or the bracket in front of a name.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from pii_bench.taxonomy import PiiType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pii_bench.systems.encoder.reader import Labelled

_MONTH: Final = (
    "(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
)
_DAY: Final = r"(?:0?[1-9]|[12]\d|3[01])(?:st|nd|rd|th)?"
_YEAR: Final = r"(?:1[89]|20)\d\d"
_DATES: Final = re.compile(
    rf"(?<![\w./-])(?:{_DAY}(?: of)? {_MONTH}(?:,? {_YEAR})?|{_MONTH} {_DAY}(?:,? {_YEAR})?"
    rf"|{_MONTH},? {_YEAR})(?![\w/-])",
    re.IGNORECASE,
)
# Parts with a digit each, joined without a space: 22072/02, 1,769.50, 14.03.1962.
_NUMBERS: Final = re.compile(r"(?<![\w/.,:])\d\w*+(?:[/.,:]\w*\d\w*+)++(?![\w/])")
_NUMBERED: Final = frozenset({PiiType.CODE, PiiType.DATETIME, PiiType.QUANTITY})
_NUMBER_OF: Final = re.compile(r"(?:nos?|nr)\b\.?\s+(?=\S*\d)", re.IGNORECASE)
_FIRST: Final = "+@(-−#_"
_LAST: Final = "%\"'+-−).°_′″"


def with_whole_spans(text: str, spans: Sequence[Labelled]) -> list[Labelled]:
    """Spans of a text, in order, with the dates and numbers whole that they are a part of.

    Spans that come to overlap become one, of the first one's type; a span without a letter
    or digit is dropped.
    """
    dates = [match.span() for match in _DATES.finditer(text)]
    numbers = [match.span() for match in _NUMBERS.finditer(text)]
    whole = [
        _tidied(
            text,
            _grown(
                _grown(span, numbers if span[2] in _NUMBERED else ()),
                dates if span[2] is PiiType.DATETIME else (),
            ),
        )
        for span in spans
    ]
    found: list[Labelled] = []
    for start, end, kind in sorted(whole):
        if not any(map(str.isalnum, text[start:end])):
            continue
        if found and start < found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end), found[-1][2])
        else:
            found.append((start, end, kind))
    return found


def _grown(span: Labelled, places: Sequence[tuple[int, int]]) -> Labelled:
    """A span with those places that it overlaps; these are in order and do not overlap."""
    start, end, kind = span
    for number in range(bisect_right(places, start, key=itemgetter(1)), len(places)):
        begin, stop = places[number]
        if begin >= end:
            break
        start, end = min(start, begin), max(end, stop)
    return start, end, kind


def _tidied(text: str, span: Labelled) -> Labelled:
    """A span without "no." in front of a number, stray punctuation, or half a pair of brackets."""
    start, end, kind = span
    if kind is PiiType.CODE and (match := _NUMBER_OF.match(text, start, end)):
        start = match.end()
    while start < end and not _may_be(text[start], _FIRST):
        start += 1
    while start < end and not _may_be(text[end - 1], _LAST):
        end -= 1
    missing = text.count("(", start, end) - text.count(")", start, end)
    if missing == 1 and text.startswith("(", start):
        start += 1
    elif missing == 1 and text.startswith(")", end):
        end += 1
    elif missing == -1 and text.endswith(")", start, end):
        end -= 1
    elif missing == -1 and text.endswith("(", 0, start):
        start -= 1
    return start, end, kind


def _may_be(character: str, others: str) -> bool:
    """Whether a span may begin or end so: with a letter, mark, digit, currency sign or another."""
    category = unicodedata.category(character)
    return category[0] in "LMN" or category == "Sc" or character in others
