"""The tags that replace masked texts: `<Phone Number>`, `<Full Name 2>`.

The name in a tag is a category of the taxonomy where the format of the text decides it within
the predicted type, and the plain name of the type elsewhere. A format decides only where people
write nothing else so: eight digits are a student's number in the taxonomy, but any number in a
letter, so they stay an `Identifier`. Sums of money look alike in all their categories: `Amount`.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import count
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from pii_bench.datasets.value_formats import FORMATS, parse_amount
from pii_bench.scorer import normalise
from pii_bench.taxonomy import PiiType

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Mapping

    Format = tuple[str, Callable[[str], bool]]

TAG: Final = re.compile(
    r"(?:<|&(?:lt|#60|#x3c);)([^<>\[\]&]+)(?:>|&(?:gt|#62|#x3e);)|\[([^<>\[\]&]+)\]",
    re.IGNORECASE,
)
"""What may be a tag: `<Age>`, and as answers change it: `[Age]`, `&lt;Age&gt;`, `&#60;Age&#62;`."""

_BETWEEN_WORDS: Final = re.compile(r"[\W_]+")

PLAIN_NAMES: Final[Mapping[str, str]] = MappingProxyType(
    {
        PiiType.PER: "Person",
        PiiType.CODE: "Identifier",
        PiiType.LOC: "Location",
        PiiType.ORG: "Organisation",
        PiiType.DEM: "Personal Detail",
        PiiType.DATETIME: "Date or Time",
        PiiType.QUANTITY: "Financial Figure",
    }
)
"""The name of a type, for texts whose format tells no category."""

ANY_TYPE: Final = "Personal Information"
"""The name of a type that is none of the seven."""

_MONTH: Final = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
)
_DAY: Final = r"(?:3[01]|[12]\d|0?[1-9])(?:st|nd|rd|th)?"
_YEAR: Final = r"(?:1[89]|20)\d\d"
_AM_PM: Final = r"[ap]\.?m\.?"


def _like(*patterns: str) -> Callable[[str], bool]:
    compiled = re.compile("|".join(f"(?:{each})" for each in patterns), re.ASCII | re.IGNORECASE)
    return lambda text: compiled.fullmatch(text) is not None


def _of_category(name: str) -> Format:
    return name, FORMATS[name]


def _is_card_number(text: str) -> bool:
    return FORMATS["Credit Card"](re.sub(r"(?<=\d)[ -](?=\d)", "", text))


_NAMES: Final[Mapping[str, tuple[Format, ...]]] = MappingProxyType(
    {
        PiiType.PER: (
            ("Social Media Handle", _like(r"@[\w.-]{2,30}")),
            _of_category("Full Name"),
        ),
        PiiType.CODE: (
            _of_category("Email Address"),
            _of_category("Social Security Number"),
            _of_category("IP Address"),
            _of_category("Password Hash"),
            ("Credit Card", _is_card_number),
            (
                "Phone Number",
                _like(
                    # E.164: at most 15 digits behind the plus.
                    r"\+[1-9](?:[ ().-]{0,3}\d){6,14}",
                    r"(?:1[ .-])?(?:\([2-9]\d\d\) ?|[2-9]\d\d[ .-])[2-9]\d\d[ .-]\d{4}",
                ),
            ),
        ),
        PiiType.DEM: (
            _of_category("Gender"),
            _of_category("Height"),
            _of_category("Weight"),
            _of_category("Blood Type"),
            _of_category("Sexual Orientation"),
            ("Age", _like(r"(?:[1-9]?\d|1[01]\d|120)(?:[ -]years?(?:[ -](?:old|of age))?)?")),
        ),
        PiiType.DATETIME: (
            (
                "Time",
                _like(
                    rf"(?:[01]?\d|2[0-3])[:.][0-5]\d(?::[0-5]\d)?(?: ?{_AM_PM})?",
                    rf"(?:1[0-2]|0?[1-9]) ?{_AM_PM}",
                ),
            ),
            (
                "Date",
                _like(
                    rf"{_YEAR}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])",
                    r"\d{1,2}([./-])\d{1,2}\1(?:\d\d|\d{4})",
                    rf"(?:{_DAY}(?: of)? )?{_MONTH}(?:,? {_YEAR})?",
                    rf"{_MONTH} {_DAY}(?:,? {_YEAR})?",
                ),
            ),
            (
                "Duration",
                _like(
                    r"\d+(?:\.\d+)?[ -]?(?:d|h|m|s|(?:sec|min|second|minute|hour|day|week|month"
                    r"|year)s?)"
                ),
            ),
        ),
        PiiType.QUANTITY: (
            ("Amount", lambda text: parse_amount(text) is not None),
            ("Percentage", _like(r"[-+\u2212]?\d+(?:[.,]\d+)? ?%")),
        ),
    }
)
"""Per type the names whose formats tell them apart, the first that fits counts."""


def name_of(pii_type: str, text: str) -> str:
    """The name in the tag of a text, without its number; any type is fine."""
    plain = normalise(text)
    fitting = (name for name, fits in _NAMES.get(pii_type, ()) if fits(plain))
    return next(fitting, PLAIN_NAMES.get(pii_type, ANY_TYPE))


def number_tags(names: Mapping[str, str], text: str) -> dict[str, str]:
    """A tag for each of several texts, each another.

    A name that only one of them has is not numbered; others are, from 1, in order. A tag
    that is in the text already, in any writing, is not given to anything: the two could not be
    told apart.

    Args:
        names: text to the name of its tag.
        text: what is masked.

    Returns:
        The same texts, each with its tag.
    """
    present = {tag_key(match) for match in TAG.finditer(text)}
    shared = Counter(names.values())
    free = {name: _free_tags(name, present) for name in shared}
    tags: dict[str, str] = {}
    for masked, name in names.items():
        alone = f"<{name}>"
        unnumbered = shared[name] == 1 and plain_key(name) not in present
        tags[masked] = alone if unnumbered else next(free[name])
    return tags


def _free_tags(name: str, present: Container[str]) -> Iterator[str]:
    numbered = (f"{name} {number}" for number in count(1))
    return (f"<{each}>" for each in numbered if plain_key(each) not in present)


def tag_key(match: re.Match[str]) -> str:
    """What a match of `TAG` says, whatever its brackets, case and spacing."""
    return plain_key(match[1] or match[2])


def plain_key(name: str) -> str:
    """The letters and digits of a name, without case."""
    return _BETWEEN_WORDS.sub("", name).casefold()
