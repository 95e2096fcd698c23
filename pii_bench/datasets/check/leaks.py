"""Whether something looks like PII and is not annotated."""

from __future__ import annotations

import ipaddress
import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from pii_bench.datasets.check.names import name_parts
from pii_bench.datasets.check.problem import Problem
from pii_bench.datasets.check.text import Cover, annotated_spans, occurrences
from pii_bench.datasets.check.values import AMOUNT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pii_bench.datasets.sample import Sample
    from pii_bench.scorer.locate import Span

_MONTH_NAME: Final = (
    r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?"
    r"|Sept?(?:ember)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)\b"
)
_MONTH: Final = rf"{_MONTH_NAME}\.?"
_DAY: Final = r"\d{1,2}(?:st|nd|rd|th)?"
_YEAR: Final = r"(?:,? \d{4}\b)?"

_IP_V6: Final = "IPv6 address"

# From the particular to the general: of what two patterns find, the first one names it.
_PATTERNS: Final[Mapping[str, re.Pattern[str]]] = MappingProxyType(
    {
        "e-mail address": re.compile(r"[\w.+-]+@\w[\w-]*(?:\.[\w-]+)+"),
        "handle": re.compile(r"(?<![\w.])@\w{2,}"),
        "IPv4 address": re.compile(r"(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?!\.?\d)"),
        _IP_V6: re.compile(r"(?<![\w:])(?:[0-9A-Fa-f]{0,4}:){2,}[0-9A-Fa-f]{0,4}(?![\w:])"),
        "hexadecimal string": re.compile(r"\b[0-9A-Fa-f]{32,}\b"),
        "date": re.compile(
            r"\b\d{4}-\d{2}-\d{2}\b|\b\d{1,2}/\d{1,2}/\d{2,4}\b|\b\d{1,2}\.\d{1,2}\.\d{4}\b"
            # Behind a day and a month alone a full stop ends the sentence.
            rf"|\b{_DAY} (?:of )?{_MONTH_NAME}(?:\.(?= \d{{4}}))?{_YEAR}|\b{_MONTH} {_DAY}\b{_YEAR}"
        ),
        "time": re.compile(r"\b\d{1,2}:\d{2}:\d{2}\b"),
        "currency amount": AMOUNT,
        "percentage": re.compile(r"(?<![\d.])\d+\.\d{2} ?%"),
        "phone number": re.compile(
            r"\+\d[\d ().-]{6,}\d|(?<![\d-])\(?\d{3}\)?[ .-]\d{3}[ .-]\d{4}(?![\d-])"
        ),
        "social security number": re.compile(r"\b\d{3}-\d{2}-\d{4}\b"),
        "number in groups": re.compile(r"(?<!\d)\d{4}(?:[ -]\d{4}){2,}(?!\d)"),
        "run of digits": re.compile(r"\d{5,}"),
    }
)


def leak_problems(sample: Sample) -> Iterator[Problem]:
    """What looks like PII outside of the annotated spans.

    Rules: `leak`, a piece of text has the look of an address, a number, an amount, a date or
    a time; `name-leak`, a part of a person's name stands on its own. What `meta.public` lists
    (the price of a loaf, the day of a public event) is known to be about no person of the
    sample, and is no leak.
    """
    spans = annotated_spans(sample) | _public_spans(sample)
    annotated = Cover(spans)
    found: set[Span] = set()
    for what, pattern in _PATTERNS.items():
        # What one pattern finds does not overlap.
        before = Cover(found)
        for match in pattern.finditer(sample.description):
            span = match.span()
            known = annotated.covers(span) or before.holds(span)
            if known or (what == _IP_V6 and not _is_ip_v6(match[0])):
                continue
            found.add(span)
            reason = f"{what} {match[0]!r} at {span[0]} is not annotated"
            yield Problem(sample.id, "leak", reason)
    known_spans = Cover(spans | found)
    for part in name_parts(sample):
        for span in occurrences(part, sample.description):
            if not known_spans.holds(span):
                reason = f"{part!r} of a person's name stands alone at {span[0]}"
                yield Problem(sample.id, "name-leak", reason)


def _public_spans(sample: Sample) -> frozenset[Span]:
    public = sample.meta.get("public")
    texts = public if isinstance(public, list) else ()
    return frozenset(
        span
        for text in texts
        if isinstance(text, str) and text
        for span in occurrences(text, sample.description)
    )


def _is_ip_v6(text: str) -> bool:
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    # "::" alone is an address, and punctuation.
    return any(character.isalnum() for character in text)
