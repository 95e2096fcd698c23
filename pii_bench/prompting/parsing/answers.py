"""The results of the parsers, the steps that they share, and the parsers of enforced JSON.

Free text is read by `read_completion`: first in the expected form, then without thought, then with
repairs. Answers in a form that the provider enforced (`strategies.answer_schema`), and those of
local systems, are JSON and are not repaired: text that is not JSON is `truncated` if the model
reached its limit, else `malformed`, as is JSON of another shape. A complete object counts whatever
the finish reason. Blank texts stay, since the schema allows them; the scorer ignores them.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from pii_bench.files import encodable
from pii_bench.models.base import Finish
from pii_bench.tasks import Status

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

PARSER = "pii-parse-1"
"""Version of the parsers, part of the signature of every score."""

Subject: TypeAlias = tuple[tuple[str, str], ...]
"""The (text, type) pairs of a subject in the order of the answer, with repeats."""

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
    """All repairs, in the order in which they run and are recorded."""

    # The text as a whole.
    LONE_SURROGATE = "lone-surrogate"  # half of a surrogate pair became U+FFFD
    ZERO_WIDTH = "zero-width"  # zero-width spaces and byte-order marks were removed
    CODE_FENCE = "code-fence"  # Markdown code fences were removed
    # Where the answer is.
    MARKER_VARIANT = "marker-variant"  # the answer's marker was not written `### Answer:`
    NO_MARKER = "no-marker"  # no marker: the answer was found by its form
    EARLIER_ANSWER = "earlier-answer"  # the last marker had nothing after it; the one before counts
    LABEL_VARIANT = "label-variant"  # a label was not `Subject1{` at the start of a line
    NO_LABEL = "no-label"  # subjects without labels, told apart by their brackets
    PROSE_AROUND = "prose-around"  # text before or after the answer was ignored
    QUOTED_IN_PROSE = "quoted-in-prose"  # the quoted texts of a sentence were taken
    BULLET_LIST = "bullet-list"  # one item a line, bulleted or numbered, was read as a list
    PLAIN_TEXT = "plain-text"  # items without brackets around them were read as a list
    # The characters of a list or an object.
    SINGLE_QUOTES = "single-quotes"  # single quotes delimit a text
    SMART_QUOTES = "smart-quotes"  # typographic quotes or backticks delimit a text
    ESCAPED_QUOTES = "escaped-quotes"  # the delimiting quotes were escaped
    DOUBLED_QUOTES = "doubled-quotes"  # quotes written twice or more count once
    NESTED_QUOTES = "nested-quotes"  # unescaped quotes inside a text belong to it
    BAD_ESCAPE = "bad-escape"  # an unknown escape or a raw control character was kept as written
    UNQUOTED = "unquoted"  # a text had no quotes
    NON_STRING_ITEM = "non-string-item"  # numbers became texts; null, None and dots were dropped
    FULL_WIDTH = "full-width"  # full-width punctuation was read as its ASCII form
    SEPARATOR = "separator"  # a semicolon was read as a comma, or an arrow as a colon
    MISSING_COMMA = "missing-comma"  # two items had no comma between them
    STRAY_COMMA = "stray-comma"  # a comma too many was ignored
    STRAY_TEXT = "stray-text"  # a note next to an item, or a stray mark, was ignored
    ROUND_BRACKETS = "round-brackets"  # round brackets enclose a list, as in Python
    BRACKET_MISMATCH = "bracket-mismatch"  # a bracket was closed by one of another kind
    TOO_DEEP = "too-deep"  # brackets nested deeper than any answer needs were ignored
    CLOSE_OPEN = "close-open"  # the answer was cut off: complete items kept, the last half dropped
    # What the list or the object says.
    OTHER_SHAPE = "other-shape"  # lists or objects of another shape hold the entities
    BLANK_ITEM = "blank-item"  # texts of white space only were dropped
    EXPLICIT_NONE = "explicit-none"  # words such as None or N/A say that there is nothing
    TYPE_FIRST = "type-first"  # the type precedes its text
    TYPE_ALIAS = "type-alias"  # a type was spelt out or in lower case
    TYPE_LIST = "type-list"  # of several types for one text, the first counts
    UNKNOWN_TYPE = "unknown-type"  # a type outside the seven stays as written, in upper case
    MISSING_TYPE = "missing-type"  # a text without a type keeps an empty one
    MERGED_LABEL = "merged-label"  # a label used twice names one subject
    LAST_GROUP = "last-group"  # of a draft and a later version, the last complete one counts


@dataclass(frozen=True, slots=True)
class ParsedDetection:
    """Predicted subjects in the order of the answer; None if the status has no answer.

    `repairs` are the names of the stages that changed something, here and below.
    """

    subjects: tuple[Subject, ...] | None
    status: Status
    repairs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ParsedRelated:
    """Predicted texts in the order of the answer, with repeats; None if there is no answer."""

    texts: tuple[str, ...] | None
    status: Status
    repairs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ParsedRewriting:
    """A rewritten text, not blank; None if there is no answer."""

    text: str | None
    status: Status
    repairs: tuple[str, ...] = ()


def type_of(written: str) -> str | None:
    """Return the type of a name (`PER`, `person`, `Date/Time`, `LOC (city)`), if it has one."""
    if len(written) > _LONGEST_NAME:
        return None
    explained = _EXPLAINED.fullmatch(written)
    name = explained[1] if explained else written
    return _TYPE_OF.get(_PUNCTUATION.sub("", name.lower()))


Payload = TypeVar("Payload", bound=tuple[object, ...])

_TAG = re.compile(r"<(/?)(?:think|thinking|reasoning)>", re.IGNORECASE)
_ZERO_WIDTH = re.compile("[\u200b\u2060\ufeff]+")
_FENCE = re.compile(
    r"^[ \t]*`{3,}[\w+-]*[ \t]*$|`{3,}(?:jsonl?|python|text|plaintext|markdown)?", re.MULTILINE
)

_REFUSAL_REACH: Final = 300
_CANNOT = r"(?:can't|cannot|can not|won't|will not|(?:am|'m) (?:unable|not able) to|must decline)"
_REFUSALS = {
    "apology and inability": rf"\b(?:sorry|apologi[sz]e)\b.{{0,60}}?\bI ?{_CANNOT}",
    "inability to do the task": rf"\bI ?{_CANNOT}(?: to)? (?:help|assist|provide|comply|process"
    r"|extract|identify|share|fulfill?|complete|continue|answer|discuss|do that|engage)(?! any\b)",
    "I decline": r"\bI (?:must|have to|respectfully) decline",
    "as an AI": r"\bas an? (?:AI|artificial intelligence|(?:large )?language)"
    r"(?:,| (?:language )?(?:model|assistant|system)\b)",
    "against the rules": r"\b(?:against|violates?) (?:my|our|the) (?:\w+ )?(?:guidelines|polic)",
}
"""Patterns of refusals; only the first characters of an answer are searched."""

_REFUSAL = re.compile("|".join(_REFUSALS.values()), re.IGNORECASE | re.DOTALL)

DECORATION: Final = " \t\r\n*_>#`.。"
"""Characters without meaning around an answer."""

_BULLET = re.compile(r"[ \t]*+(?:[-*•–+‣]|\(?\d{1,3}[.)])[ \t]++(\S.*)")
_NOTHING = re.compile(
    r"[\s*_(\"']*+(?:(?:none|null|nil|n/a|nothing|empty)"
    r"(?=[^\w\s/]|\s*$|\s+(?:of|is|are|was|were|needed|required|found|relevant|to)\b)"
    r"|no(?: [\w-]+){0,3} (?:pii|entit\w+|information|data|spans?|items?|subjects?)\b)",
    re.IGNORECASE,
)


def read_completion(
    completion_text: str,
    finish: Finish,
    read_expected: Callable[[str], Payload | None],
    read_tolerant: Callable[[str, Finish, set[Stage]], Payload | Status],
) -> tuple[Payload | None, Status, tuple[str, ...]]:
    """Read an answer in the expected form, then without its thought, then with repairs.

    Args:
        completion_text: the raw text.
        finish: why the model stopped.
        read_expected: reads the form that the prompt asks for; returns None for others.
        read_tolerant: reads any form and adds the repairs to the set, or returns the status of
            an answer that it cannot read.

    Returns:
        The payload (None without an answer), the status and the names of the stages.
    """
    if status := settled(completion_text, finish):
        return None, status, ()
    text = encodable(completion_text)
    repairs = {Stage.LONE_SURROGATE} if text != completion_text else set()
    payload = read_expected(text)
    if payload is None:
        answer = without_thought(text)
        if answer is None:
            return None, unreadable("", finish), ()
        if status := settled(answer, finish):
            return None, status, ()
        payload = read_expected(answer)
        if payload is None:
            read = read_tolerant(_without_wrapping(answer, repairs), finish, repairs)
            if isinstance(read, Status):
                return None, read, ()
            payload = read
    names = tuple(stage.value for stage in Stage if stage in repairs)
    return payload, Status.REPAIRED if names else Status.OK, names


def settled(text: str, finish: Finish) -> Status | None:
    """Return the status if the finish reason or a blank text determines it."""
    if finish is Finish.FILTER:
        return Status.FILTERED
    if finish is Finish.REFUSAL:
        return Status.REFUSED
    if text.strip():
        return None
    return Status.TRUNCATED if finish is Finish.LENGTH else Status.EMPTY


def without_thought(text: str) -> str | None:
    """Remove reasoning blocks: `<think>`, `<thinking>`, `<reasoning>`.

    No repair is recorded, since thought is normal. If a closing tag has no opening one (chat
    templates drop it), everything before it is thought.

    Returns:
        The text without thought; None if the last block is not closed.
    """
    parts: list[str] = []
    after = 0
    thinking = False
    for tag in _TAG.finditer(text):
        closing = bool(tag[1])
        if closing and not thinking:
            parts.clear()
        elif not closing and not thinking:
            parts.append(text[after : tag.start()])
        thinking = not closing
        after = tag.end()
    return None if thinking else "".join([*parts, text[after:]])


def _without_wrapping(text: str, repairs: set[Stage]) -> str:
    """Remove zero-width characters and code fences.

    Joiners (U+200C, U+200D) stay: names in some scripts need them.
    """
    plain = _ZERO_WIDTH.sub("", text)
    if plain != text:
        repairs.add(Stage.ZERO_WIDTH)
    bare = _FENCE.sub(" ", plain)
    if bare != plain:
        repairs.add(Stage.CODE_FENCE)
    return bare


def is_refusal(text: str) -> bool:
    """Return True if the text starts like a refusal."""
    return _REFUSAL.search(text.strip()[:_REFUSAL_REACH].replace("’", "'")) is not None


def unreadable(text: str, finish: Finish) -> Status:
    """Return the status of a text without a readable answer."""
    if is_refusal(text):
        return Status.REFUSED
    return Status.TRUNCATED if finish is Finish.LENGTH else Status.MALFORMED


def bullet_item(line: str) -> str | None:
    """Return the text after a bullet or a number; None if the line has neither."""
    found = _BULLET.fullmatch(line)
    return found[1].strip() if found else None


def says_nothing(line: str) -> bool:
    """Return True if a line says that there is no PII (None, N/A, no PII ...)."""
    return _NOTHING.match(line[:120]) is not None


KEY: Final = "PII"
"""The key of an answer with the labels of a taxonomy."""


class _ShapeError(Exception):
    """The JSON has another shape than the schema."""


def parse_structured_detection(
    completion_text: str, finish: Finish = Finish.UNKNOWN
) -> ParsedDetection:
    """Read `{"subjects": [{"entities": [{"text": ..., "type": ...}]}]}`."""
    return ParsedDetection(*_read(completion_text, finish, _subjects))


def parse_structured_related(
    completion_text: str, finish: Finish = Finish.UNKNOWN
) -> ParsedRelated:
    """Read `{..., "answer": ["...", ...]}`; other keys have texts of the reasoning."""
    return ParsedRelated(*_read(completion_text, finish, _answer))


def parse_structured_labelled(
    completion_text: str, labels: Collection[str], finish: Finish = Finish.UNKNOWN
) -> ParsedDetection:
    """Read `{"PII": {"LABEL": ["value", ...]}}`; other labels are malformed."""
    return ParsedDetection(*_read(completion_text, finish, partial(_labelled, labels)))


def _read(
    text: str, finish: Finish, payload_of: Callable[[object], Payload]
) -> tuple[Payload | None, Status]:
    if status := settled(text, finish):
        return None, status
    try:
        return payload_of(json.loads(text)), Status.OK
    except _ShapeError:
        return None, Status.MALFORMED
    except (ValueError, RecursionError):
        return None, Status.TRUNCATED if finish is Finish.LENGTH else Status.MALFORMED


def _subjects(value: object) -> tuple[Subject, ...]:
    subjects: list[Subject] = []
    for subject in _items(_members(value, "subjects")[0]):
        entities = _items(_members(subject, "entities")[0])
        subjects.append(tuple(map(_entity, entities)))
    return tuple(subjects)


def _entity(value: object) -> tuple[str, str]:
    text, pii_type = _members(value, "text", "type")
    if not isinstance(pii_type, str) or pii_type not in TYPES:
        raise _ShapeError
    return _text(text), pii_type


def _labelled(labels: Collection[str], record: object) -> tuple[Subject, ...]:
    (found,) = _members(record, KEY)
    if not isinstance(found, dict) or not found.keys() <= set(labels):
        raise _ShapeError
    return one_subject(
        [(_text(value), label) for label, values in found.items() for value in _items(values)]
    )


def _answer(value: object) -> tuple[str, ...]:
    if not isinstance(value, dict) or "answer" not in value:
        raise _ShapeError
    if not all(isinstance(text, str) for key, text in value.items() if key != "answer"):
        raise _ShapeError
    return tuple(map(_text, _items(value["answer"])))


def _members(value: object, *keys: str) -> list[object]:
    """Return the values of an object with exactly these keys."""
    if not isinstance(value, dict) or value.keys() != set(keys):
        raise _ShapeError
    return [value[key] for key in keys]


def _items(value: object) -> list[object]:
    if not isinstance(value, list):
        raise _ShapeError
    return value


def _text(value: object) -> str:
    # Half of a surrogate pair cannot be encoded in a file.
    if not isinstance(value, str) or encodable(value) != value:
        raise _ShapeError
    return value


def one_subject(pairs: list[tuple[str, str]]) -> tuple[Subject, ...]:
    """Return a single subject with all pairs, or no subject without pairs."""
    return (tuple(pairs),) if pairs else ()
