"""What rules know more surely than a network.

Codes by their form, labels of forms, and which queries have no use for contact data.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pii_bench.datasets.check.formats import is_ip_address, luhn_holds
from pii_bench.taxonomy import PiiType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pii_bench.systems.encoder.reader import Labelled


def _is_card(text: str) -> bool:
    return luhn_holds("".join(filter(str.isdecimal, text)))


def _is_iban(text: str) -> bool:
    """Whether the check digits are right (ISO 13616)."""
    bare = text.replace(" ", "")
    return int("".join(str(int(c, 36)) for c in bare[4:] + bare[:4])) % 97 == 1


def _always(_: str) -> bool:
    return True


_FORMS: Final[tuple[tuple[re.Pattern[str], Callable[[str], bool]], ...]] = (
    # What is in front of no @ is matched as well, so that it is read once and not from each letter.
    (re.compile(r"[\w.%+-]++(?:(?<=\w)@\w[\w-]*(?:\.[\w-]*\w)+)?"), lambda text: "@" in text),
    (re.compile(r"(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?!\.?\d)"), is_ip_address),
    (
        re.compile(r"(?<![\w:])(?:[0-9A-Fa-f]{0,4}:){2,7}[0-9A-Fa-f]{0,4}(?![\w:])"),
        lambda text: is_ip_address(text) and len(text) > len("1:2:3:4"),
    ),
    (re.compile(r"(?<!\w)[0-9a-f]{32,128}(?!\w)", re.IGNORECASE), _always),
    (
        re.compile(r"(?<!\w)[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?(?!\w)"),
        _is_iban,
    ),
    (re.compile(r"(?<![\w-])\d{4}([ -]?)\d{4}\1\d{4}\1\d{4}(?![\w-])"), _is_card),
    (re.compile(r"(?<![\w+])\+\d{1,3}(?:[ .()-]{0,2}\d){7,12}(?!\w)"), _always),
    (re.compile(r"(?<![\w-])\d{3}-\d{2}-\d{4}(?![\w-])"), _always),
)


_CONTACT: Final = re.compile(r"\S+@\S+\.\S+|\+\d{1,3}(?:[ .()-]{0,2}\d){7,12}")
_REACHING: Final = re.compile(
    r"\b(?:phone|number|call|ring|text|mobile|cell|dial|sms|whatsapp|e-?mail|mail|contact|reach"
    r"|writ|wrot|repl|answer|send|sent|message|address|label|signature|card|form\b|slip)",
    re.IGNORECASE,
)

_LABELS: Final = frozenset(
    {
        *("address", "age", "born", "cc", "city", "company", "curriculum vitae", "cv", "date"),
        *("date of birth", "dob", "doctor", "education", "email", "e-mail", "employer"),
        *("experience", "from", "gender", "height", "iban", "ip", "job", "languages", "mobile"),
        *("name", "nationality", "notes", "occupation", "patient", "phone", "position"),
        *("profile", "reference", "references", "religion", "remarks", "resume", "school"),
        *("skills", "ssn", "street", "subject", "summary", "tel", "telephone", "to", "weight"),
        *("ticket", "user", "work experience"),
    }
)
# A line that is a heading, or what is in front of its colon.
_OPENING: Final = re.compile(r"^[^\S\n]*([A-Za-z][A-Za-z -]{0,30}?)[^\S\n]*(?::|$)", re.MULTILINE)


def fixed_forms(text: str) -> Iterator[tuple[int, int]]:
    """E-mail and IP addresses, hashes, IBANs, card, phone and social security numbers."""
    for pattern, holds in _FORMS:
        for match in pattern.finditer(text):
            if holds(match[0]):
                yield match.span()


def is_contact(text: str) -> bool:
    """Whether it is an e-mail address, or a phone number with its country code."""
    return _CONTACT.fullmatch(text) is not None


def may_need_contact(query: str) -> bool:
    """Whether a query has a word for reaching somebody, or for what an address is put on."""
    return _REACHING.search(query) is not None


def with_fixed_forms(text: str, spans: Sequence[Labelled]) -> list[Labelled]:
    """Spans of a text, in order, where a code that a rule finds replaces what overlaps it."""
    taken = bytearray(len(text))
    fixed: list[tuple[int, int]] = []
    for start, end in fixed_forms(text):
        if not any(taken[start:end]):
            taken[start:end] = b"\1" * (end - start)
            fixed.append((start, end))
    kept = [span for span in spans if not any(taken[span[0] : span[1]])]
    return sorted([*kept, *((start, end, PiiType.CODE) for start, end in fixed)])


def without_labels(text: str, spans: Sequence[Labelled]) -> list[Labelled]:
    """Spans of a text but for labels of a form ("Street:") and headings of a document."""
    labels = {
        place
        for match in _OPENING.finditer(text)
        if match[1].lower() in _LABELS
        for place in range(*match.span(1))
    }
    return [span for span in spans if not labels.issuperset(range(span[0], span[1]))]
