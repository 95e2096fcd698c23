"""What the parsers return, the table of repairs they may name, and the names of types."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pii_bench.tasks import Status

PARSER = "pii-parse-1"
"""Version of the parser, part of every score's signature."""

Subject: TypeAlias = tuple[tuple[str, str], ...]
"""One subject: its (text, type) pairs as the model ordered them, repeats kept."""

TYPES: Final = frozenset({"PER", "CODE", "LOC", "ORG", "DEM", "DATETIME", "QUANTITY"})

_ALIASES = {
    "PER": "person persons people name names fullname personname",
    "CODE": "codes identifier identifiers identifiercode identificationcode id idnumber",
    "LOC": "location locations place address gpe",
    "ORG": "organization organizations organisation organisations company institution",
    "DEM": "demographic demographics demographicinformation demographicattribute",
    "DATETIME": "date time dates times dateandtime timestamp",
    "QUANTITY": "quantities quant number amount money numeric numericalvalue",
}
_TYPE_OF = {name.lower(): name for name in TYPES} | {
    alias: name for name, aliases in _ALIASES.items() for alias in aliases.split()
}
_PUNCTUATION = re.compile(r"[\W_]+")
_EXPLAINED = re.compile(r"\W*([A-Z]+)\s*\([\w\s/-]*\)\W*")
_LONGEST_NAME: Final = 60


class Stage(StrEnum):
    """Every repair by name; `Stage.sentence` says what it does.

    The order of the members is the order in which the stages run, and the order
    of the names in `repairs`.
    """

    sentence: str

    def __new__(cls, name: str, sentence: str) -> Stage:
        """Make a member that is its name and knows its sentence."""
        member = str.__new__(cls, name)
        member._value_ = name
        member.sentence = sentence
        return member

    # The text as a whole.
    LONE_SURROGATE = "lone-surrogate", "Half of a surrogate pair became U+FFFD."
    ZERO_WIDTH = "zero-width", "Zero-width spaces and byte-order marks were removed."
    CODE_FENCE = "code-fence", "Markdown code fences were removed."
    # Where the answer is.
    MARKER_VARIANT = "marker-variant", "The answer's marker was not written `### Answer:`."
    NO_MARKER = "no-marker", "No marker: the answer was found by its form."
    EARLIER_ANSWER = (
        "earlier-answer",
        "The last marker had nothing after it; the one before counts.",
    )
    LABEL_VARIANT = (
        "label-variant",
        "A label was not `Subject1` at the start of a line, its object right behind.",
    )
    NO_LABEL = "no-label", "Subjects without labels, told apart by their brackets."
    PROSE_AROUND = "prose-around", "Text before or after the answer was ignored."
    QUOTED_IN_PROSE = "quoted-in-prose", "The quoted texts of a sentence were taken."
    BULLET_LIST = "bullet-list", "One item a line, bulleted or numbered, was read as a list."
    PLAIN_TEXT = "plain-text", "Items without brackets around them were read as a list."
    # The characters of a list or an object.
    SINGLE_QUOTES = "single-quotes", "Single quotes delimit a text."
    SMART_QUOTES = "smart-quotes", "Typographic quotes or backticks delimit a text."
    ESCAPED_QUOTES = "escaped-quotes", "The delimiting quotes were escaped."
    DOUBLED_QUOTES = "doubled-quotes", "Quotes written twice or more count once."
    NESTED_QUOTES = "nested-quotes", "Unescaped quotes inside a text belong to it."
    BAD_ESCAPE = "bad-escape", "An unknown escape or a raw control character was kept as written."
    UNQUOTED = "unquoted", "A text had no quotes."
    NON_STRING_ITEM = "non-string-item", "Numbers became texts; null, None and dots were dropped."
    FULL_WIDTH = "full-width", "Full-width punctuation was read as its ASCII form."
    SEPARATOR = "separator", "A semicolon stands for a comma, or an arrow for a colon."
    MISSING_COMMA = "missing-comma", "Two items had no comma between them."
    STRAY_COMMA = "stray-comma", "A comma too many was ignored."
    STRAY_TEXT = "stray-text", "A note next to an item, or a stray mark, was ignored."
    ROUND_BRACKETS = "round-brackets", "Round brackets enclose a list, as in Python."
    BRACKET_MISMATCH = "bracket-mismatch", "A bracket was closed by one of another kind."
    TOO_DEEP = "too-deep", "Brackets nested deeper than any answer needs were ignored."
    CLOSE_OPEN = "close-open", "The answer was cut off: complete items kept, the last half dropped."
    # What the list or the object says.
    OTHER_SHAPE = "other-shape", "Lists or objects of another shape hold the entities."
    BLANK_ITEM = "blank-item", "Texts of white space only were dropped."
    EXPLICIT_NONE = "explicit-none", "Words such as None or N/A say that there is nothing."
    TYPE_FIRST = "type-first", "The type precedes its text."
    TYPE_ALIAS = "type-alias", "A type was spelt out or in lower case."
    TYPE_LIST = "type-list", "Of several types for one text, the first counts."
    UNKNOWN_TYPE = "unknown-type", "A type outside the seven stays as written, in upper case."
    MISSING_TYPE = "missing-type", "A text without a type keeps an empty one."
    MERGED_LABEL = "merged-label", "A label used twice names one subject."
    LAST_GROUP = "last-group", "Of a draft and a later version, the last complete one counts."


def in_order(stages: Iterable[Stage]) -> tuple[str, ...]:
    """Give the names of the stages, each once, in the order of the table."""
    seen = set(stages)
    return tuple(stage.value for stage in Stage if stage in seen)


@dataclass(frozen=True, slots=True)
class ParsedDetection:
    """An answer to the detection prompt.

    Attributes:
        subjects: the predicted subjects in the order of the answer; None exactly when
            the status is neither `ok` nor `repaired`.
        status: what became of the answer.
        repairs: names of the stages that changed something (`Stage`).
    """

    subjects: tuple[Subject, ...] | None
    status: Status
    repairs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ParsedRelated:
    """An answer to a query-related prompt.

    Attributes:
        texts: the predicted texts in the order of the answer, repeats kept; None exactly
            when the status is neither `ok` nor `repaired`.
        status: what became of the answer.
        repairs: names of the stages that changed something (`Stage`).
    """

    texts: tuple[str, ...] | None
    status: Status
    repairs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ParsedRewriting:
    """A text that was written anew.

    Attributes:
        text: not blank; None exactly when the status is neither `ok` nor `repaired`.
        status: what became of the answer.
        repairs: names of the stages that changed something (`Stage`).
    """

    text: str | None
    status: Status
    repairs: tuple[str, ...] = ()


def type_of(written: str) -> str | None:
    """Give the type that a name means (`PER`, `person`, `Date/Time`, `LOC (city)`), or None."""
    if len(written) > _LONGEST_NAME:
        return None
    explained = _EXPLAINED.fullmatch(written)
    name = explained[1] if explained else written
    return _TYPE_OF.get(_PUNCTUATION.sub("", name.lower()))
