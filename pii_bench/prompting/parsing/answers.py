"""What the parsers return, and the steps of reading a completion.

Free text is read by `read_completion`: as asked for, without thought, then with repairs. Answers
in a form that the provider enforced (`pii_bench.prompting.strategies.answer_schema`), and those of
local systems, are JSON and are not repaired: what is no JSON is `truncated` where the model ran
into its limit, else `malformed`, as is JSON of another shape. A complete object counts however it
ended. Blank texts stay, as the schema allows them; the scorer leaves them out.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from pii_bench.models.base import Finish
from pii_bench.tasks import Status

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

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
    """Every repair by name, in the order in which the stages run and `repairs` names them."""

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
    SEPARATOR = "separator"  # a semicolon stands for a comma, or an arrow for a colon
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
    """Predicted subjects in the order of the answer; None exactly where the status has no answer.

    `repairs` are the names of the stages that changed something (`Stage`), here and below.
    """

    subjects: tuple[Subject, ...] | None
    status: Status
    repairs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ParsedRelated:
    """Predicted texts in the order of the answer, repeats kept; None as above."""

    texts: tuple[str, ...] | None
    status: Status
    repairs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ParsedRewriting:
    """A text that was written anew, not blank; None as above."""

    text: str | None
    status: Status
    repairs: tuple[str, ...] = ()


def type_of(written: str) -> str | None:
    """The type that a name means (`PER`, `person`, `Date/Time`, `LOC (city)`), or None."""
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

_SURROGATE = re.compile("[\ud800-\udfff]")

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
"""Openers of refusals, looked for only in the first characters of an answer."""

_REFUSAL = re.compile("|".join(_REFUSALS.values()), re.IGNORECASE | re.DOTALL)

DECORATION: Final = " \t\r\n*_>#`.。"
"""Characters around an answer that say nothing."""

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
    """Read an answer strictly, then without its thought, then with repairs.

    Args:
        completion_text: raw.
        finish: why the model stopped.
        read_expected: reads the form that the prompt asks for, and gives None for others.
        read_tolerant: reads any form, adding to the stages what it needed, or gives the
            status that says why it cannot.

    Returns:
        The payload (None without an answer), the status and the names of the stages.
    """
    if status := settled(completion_text, finish):
        return None, status, ()
    text = mend_surrogates(completion_text)
    repairs = {Stage.LONE_SURROGATE} if text != completion_text else set()
    said = without_thought(text)
    payload = read_expected(text)
    if payload is None:
        if said is None:
            return None, unreadable("", finish), ()
        if status := settled(said, finish):
            return None, status, ()
        payload = read_expected(said)
    if payload is None and said is not None:
        read = read_tolerant(_without_wrapping(said, repairs), finish, repairs)
        if isinstance(read, Status):
            return None, read, ()
        payload = read
    names = tuple(stage.value for stage in Stage if stage in repairs)
    return payload, Status.REPAIRED if names else Status.OK, names


def settled(text: str, finish: Finish) -> Status | None:
    """The status that the finish reason or a blank text settles, else None."""
    if finish is Finish.FILTER:
        return Status.FILTERED
    if finish is Finish.REFUSAL:
        return Status.REFUSED
    if text.strip():
        return None
    return Status.TRUNCATED if finish is Finish.LENGTH else Status.EMPTY


def without_thought(text: str) -> str | None:
    """Remove reasoning blocks: `<think>`, `<thinking>`, `<reasoning>`.

    To reason is normal for a reasoning model, so no stage is recorded. Where a closing
    tag has no opening one (chat templates eat it), all before it is thought.

    None where the last block is never closed.
    """
    said: list[str] = []
    after = 0
    thinking = False
    for tag in _TAG.finditer(text):
        closing = bool(tag[1])
        if closing and not thinking:
            said.clear()
        elif not closing and not thinking:
            said.append(text[after : tag.start()])
        thinking = not closing
        after = tag.end()
    return None if thinking else "".join([*said, text[after:]])


def mend_surrogates(text: str) -> str:
    """Join surrogate pairs and replace lone halves by U+FFFD, so that the text encodes."""
    if _SURROGATE.search(text) is None:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _without_wrapping(text: str, repairs: set[Stage]) -> str:
    """Remove zero-width characters and code fences; record what was removed.

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
    """Whether the text opens like a refusal."""
    return _REFUSAL.search(text.strip()[:_REFUSAL_REACH].replace("’", "'")) is not None


def unreadable(text: str, finish: Finish) -> Status:
    """The status of a text in which no answer was found."""
    if is_refusal(text):
        return Status.REFUSED
    return Status.TRUNCATED if finish is Finish.LENGTH else Status.MALFORMED


def bullet_item(line: str) -> str | None:
    """What follows a bullet or a number; None where there is neither."""
    found = _BULLET.fullmatch(line)
    return found[1].strip() if found else None


def says_nothing(line: str) -> bool:
    """Whether a line means that there is nothing to name (None, N/A, no PII ...)."""
    return _NOTHING.match(line[:120]) is not None


KEY: Final = "PII"
"""The key of an answer in the labels of a taxonomy."""


class _ShapeError(Exception):
    """JSON that is not of the shape that was asked for."""


def parse_structured_detection(
    completion_text: str, finish: Finish = Finish.UNKNOWN
) -> ParsedDetection:
    """Read `{"subjects": [{"entities": [{"text": ..., "type": ...}]}]}`."""
    return ParsedDetection(*_read(completion_text, finish, _subjects))


def parse_structured_related(
    completion_text: str, finish: Finish = Finish.UNKNOWN
) -> ParsedRelated:
    """Read the list `answer` of an object; the texts that it reasons in are not read."""
    return ParsedRelated(*_read(completion_text, finish, _answer))


def parse_structured_labelled(
    completion_text: str, labels: Collection[str], finish: Finish = Finish.UNKNOWN
) -> ParsedDetection:
    """Read `{"PII": {"LABEL": ["value", ...]}}` where only these labels may come."""
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


def _labelled(labels: Collection[str], value: object) -> tuple[Subject, ...]:
    (found,) = _members(value, KEY)
    if not isinstance(found, dict) or not found.keys() <= set(labels):
        raise _ShapeError
    return one_subject(
        [(_text(each), label) for label, values in found.items() for each in _items(values)]
    )


def _answer(value: object) -> tuple[str, ...]:
    if not isinstance(value, dict) or "answer" not in value:
        raise _ShapeError
    if not all(isinstance(said, str) for key, said in value.items() if key != "answer"):
        raise _ShapeError
    return tuple(map(_text, _items(value["answer"])))


def _members(value: object, *keys: str) -> list[object]:
    """The values of an object that has these keys and no others."""
    if not isinstance(value, dict) or value.keys() != set(keys):
        raise _ShapeError
    return [value[key] for key in keys]


def _items(value: object) -> list[object]:
    if not isinstance(value, list):
        raise _ShapeError
    return value


def _text(value: object) -> str:
    # Half of a surrogate pair is no character: no file could hold it.
    if not isinstance(value, str) or mend_surrogates(value) != value:
        raise _ShapeError
    return value


def one_subject(pairs: list[tuple[str, str]]) -> tuple[Subject, ...]:
    """All pairs as those of one subject; none where there is no pair."""
    return (tuple(pairs),) if pairs else ()
