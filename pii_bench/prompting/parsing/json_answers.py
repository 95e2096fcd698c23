"""The parsers of answers in JSON: to the prompt `json`, and in a form that the provider enforced.

The latter (`pii_bench.prompting.strategies.answer_schema`) are not repaired. What is no JSON is
`truncated` where the model ran into its limit, else `malformed`, as is JSON of another shape. A
complete object counts however it ended. Blank texts stay, as the schema allows them; the scorer
leaves them out.
"""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from pii_bench.models.base import Finish
from pii_bench.prompting.parsing.completion import (
    TYPES,
    ParsedDetection,
    ParsedRelated,
    Stage,
    Subject,
    mend_surrogates,
    read_completion,
    says_nothing,
    settled,
    unreadable,
)
from pii_bench.prompting.parsing.reader import Group, Leaf, Literal, read_literal, texts_of
from pii_bench.tasks import Status
from pii_bench.taxonomy import name_in

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from pii_bench.taxonomy import Meaning

KEY: Final = "PII"

_Payload = TypeVar("_Payload", bound=tuple[object, ...])


class _ShapeError(Exception):
    """JSON that is not of the shape that was asked for."""


def parse_labelled(
    completion_text: str, labels: Mapping[str, Meaning], finish: Finish = Finish.UNKNOWN
) -> ParsedDetection:
    """Read `{"PII": {"LABEL": ["value", ...]}}`: pairs of value and label as those of one subject.

    An answer in the expected form is never changed beyond JSON itself; any other goes through
    the stages of `Stage`. Of several objects the last that has an answer counts. No text raises.

    Args:
        completion_text: raw.
        labels: of the taxonomy that was asked for. A label in other case or with a running
            number is written as there; one that is not there stays, in upper case.
        finish: why the model stopped.
    """
    expected, tolerant = partial(_expected_form, labels), partial(_tolerant_form, labels)
    return ParsedDetection(*read_completion(completion_text, finish, expected, tolerant))


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
    text: str, finish: Finish, payload_of: Callable[[object], _Payload]
) -> tuple[_Payload | None, Status]:
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
    return _one_subject(
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


def _expected_form(labels: Mapping[str, Meaning], text: str) -> tuple[Subject, ...] | None:
    try:
        # As pairs: a label may come twice.
        value = json.loads(text, object_pairs_hook=tuple)
    except (ValueError, RecursionError):
        return None
    match value:
        case ((str(key), tuple(found)),) if key == KEY:
            pairs = []
            for label, values in found:
                if label not in labels or not isinstance(values, list):
                    return None
                if not all(isinstance(each, str) and _is_plain(each) for each in values):
                    return None
                pairs += [(each, label) for each in values]
            return _one_subject(pairs)
        case _:
            return None


def _is_plain(value: str) -> bool:
    return bool(value.strip()) and mend_surrogates(value) == value


def _tolerant_form(
    labels: Mapping[str, Meaning], text: str, finish: Finish, repairs: set[Stage]
) -> tuple[Subject, ...] | Status:
    answers = [
        (start, literal, group)
        for start, literal in _objects(text)
        if (group := _answer_in(literal.group, labels)) is not None
    ]
    if not answers:
        if "{" not in text and "\n" not in text.strip() and says_nothing(text.strip()):
            repairs.add(Stage.EXPLICIT_NONE)
            return ()
        return unreadable(text, finish)
    start, literal, group = next(
        (answer for answer in reversed(answers) if answer[1].closed), answers[-1]
    )
    if finish is Finish.LENGTH and not literal.closed:
        return Status.TRUNCATED
    if len(answers) > 1:
        repairs.add(Stage.LAST_GROUP)
    if (text[:start] + text[literal.end :]).strip():
        repairs.add(Stage.PROSE_AROUND)
    if group is literal.group:
        repairs.add(Stage.OTHER_SHAPE)
    repairs |= literal.repairs
    return _one_subject(_pairs(group, labels, repairs))


def _objects(text: str) -> Iterator[tuple[int, Literal]]:
    start = text.find("{")
    while start != -1:
        literal = read_literal(text, start, len(text))
        yield start, literal
        start = text.find("{", literal.end)


def _answer_in(group: Group, labels: Mapping[str, Meaning]) -> Group | None:
    """The group under `PII`, or a group of labels without it."""
    keys = [entry.key.text.strip() for entry in group.entries if entry.key is not None]
    for entry in group.entries:
        if entry.key is not None and entry.key.text.strip().upper() == KEY:
            return entry.value if isinstance(entry.value, Group) else None
    return group if any(name_in(labels, key) for key in keys) or not group.entries else None


def _pairs(
    group: Group, labels: Mapping[str, Meaning], repairs: set[Stage]
) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    for entry in group.entries:
        if entry.key is None:
            repairs.add(Stage.STRAY_TEXT)
            continue
        written = entry.key.text.strip()
        label = name_in(labels, written)
        if label is None:
            repairs.add(Stage.UNKNOWN_TYPE)
        elif label != entry.key.text:
            repairs.add(Stage.TYPE_ALIAS)
        if isinstance(entry.value, Leaf) or entry.value.opener != "[":
            repairs.add(Stage.OTHER_SHAPE)
        for value in texts_of(entry.value):
            if value.strip():
                pairs.append((value, label or written.upper()))
            else:
                repairs.add(Stage.BLANK_ITEM)
    return pairs


def _one_subject(pairs: list[tuple[str, str]]) -> tuple[Subject, ...]:
    return (tuple(pairs),) if pairs else ()
