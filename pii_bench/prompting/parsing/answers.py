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
from functools import partial
from typing import TYPE_CHECKING, Final, Generic, TypeAlias, TypeVar

from pii_bench.files import encodable
from pii_bench.models.base import Finish
from pii_bench.tasks import Status
from pii_bench.taxonomy import PiiType

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

PARSER = "pii-parse-2"
"""Version of the parsers, part of the signature of every score."""

Subject: TypeAlias = tuple[tuple[str, str], ...]
"""The (text, type) pairs of a subject in the order of the answer, with repeats."""

TYPES: Final = frozenset(pii_type.value for pii_type in PiiType)

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


Payload = TypeVar("Payload")


@dataclass(frozen=True, slots=True)
class Parsed(Generic[Payload]):
    """What an answer says.

    Attributes:
        payload: subjects, texts or a rewritten text; None if the status has no answer.
        status: `repaired` if the answer was not in the form that the prompt asks for.
        cut: True if the answer to a detection broke off, so that its last entity is missing.
    """

    payload: Payload | None
    status: Status
    cut: bool = False


def type_of(written: str) -> str | None:
    """Return the type of a name (`PER`, `person`, `Date/Time`, `LOC (city)`), if it has one."""
    if len(written) > _LONGEST_NAME:
        return None
    explained = _EXPLAINED.fullmatch(written)
    name = explained[1] if explained else written
    return _TYPE_OF.get(_PUNCTUATION.sub("", name.lower()))


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
    read_tolerant: Callable[[str, Finish], Parsed[Payload]],
) -> Parsed[Payload]:
    """Read an answer in the expected form, then without its thought, then with repairs.

    `read_expected` returns None for other forms than the one that the prompt asks for.
    """
    if status := settled(completion_text, finish):
        return Parsed(None, status)
    text = encodable(completion_text)
    payload = read_expected(text)
    if payload is None:
        answer = without_thought(text)
        if answer is None:
            return Parsed(None, unreadable("", finish))
        if status := settled(answer, finish):
            return Parsed(None, status)
        payload = read_expected(answer)
        if payload is None:
            # Joiners (U+200C, U+200D) stay: names in some scripts need them.
            return read_tolerant(_FENCE.sub(" ", _ZERO_WIDTH.sub("", answer)), finish)
    return Parsed(payload, Status.OK if text == completion_text else Status.REPAIRED)


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

    If a closing tag has no opening one (chat templates drop it), everything before it is thought.
    None if the last block is not closed.
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


def is_refusal(text: str) -> bool:
    """Return True if the text starts like a refusal."""
    return _REFUSAL.search(text.strip()[:_REFUSAL_REACH].replace("’", "'")) is not None


def unreadable(text: str, finish: Finish) -> Status:
    """Return the status of a text without a readable answer."""
    if is_refusal(text):
        return Status.REFUSED
    return Status.TRUNCATED if finish is Finish.LENGTH else Status.MALFORMED


def is_plain(value: object) -> bool:
    """Return True for a text that is not blank and that a file can hold."""
    return isinstance(value, str) and bool(value.strip()) and encodable(value) == value


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
) -> Parsed[tuple[Subject, ...]]:
    """Read `{"subjects": [{"entities": [{"text": ..., "type": ...}]}]}`."""
    return _read(completion_text, finish, _subjects)


def parse_structured_related(
    completion_text: str, finish: Finish = Finish.UNKNOWN
) -> Parsed[tuple[str, ...]]:
    """Read `{..., "answer": ["...", ...]}`; other keys have texts of the reasoning."""
    return _read(completion_text, finish, _answer)


def parse_structured_labelled(
    completion_text: str, labels: Collection[str], finish: Finish = Finish.UNKNOWN
) -> Parsed[tuple[Subject, ...]]:
    """Read `{"PII": {"LABEL": ["value", ...]}}`; other labels are malformed."""
    return _read(completion_text, finish, partial(_labelled, labels))


def _read(text: str, finish: Finish, payload_of: Callable[[object], Payload]) -> Parsed[Payload]:
    if status := settled(text, finish):
        return Parsed(None, status)
    try:
        return Parsed(payload_of(json.loads(text)), Status.OK)
    except _ShapeError:
        return Parsed(None, Status.MALFORMED)
    except (ValueError, RecursionError):
        return Parsed(None, Status.TRUNCATED if finish is Finish.LENGTH else Status.MALFORMED)


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
