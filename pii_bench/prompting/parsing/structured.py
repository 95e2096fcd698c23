"""The readers of answers whose form the provider enforced (`pii_bench.prompting.schemas`).

They repair nothing. What is no JSON is `truncated` where the model ran into its limit, else
`malformed`, as is JSON of another shape. A complete object counts however it ended. Blank
texts stay, as the schema allows them; the scorer leaves them out.
"""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from pii_bench.models.base import Finish
from pii_bench.prompting.parsing.completion import mend_surrogates, settled
from pii_bench.prompting.parsing.result import TYPES, ParsedDetection, ParsedRelated
from pii_bench.tasks import Status

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from pii_bench.prompting.parsing.result import Subject

_Payload = TypeVar("_Payload", bound=tuple[object, ...])


class _ShapeError(Exception):
    """JSON that is not of the schema's shape."""


def parse_structured_detection(
    completion_text: str, finish: Finish = Finish.UNKNOWN
) -> ParsedDetection:
    """Read `{"subjects": [{"entities": [{"text": ..., "type": ...}]}]}`.

    Args:
        completion_text: the completion, raw.
        finish: why the model stopped.

    Returns:
        The subjects with `ok`, or the status that says why there are none.
    """
    return ParsedDetection(*_read(completion_text, finish, _subjects))


def parse_structured_related(
    completion_text: str, finish: Finish = Finish.UNKNOWN
) -> ParsedRelated:
    """Read the list `answer` of an object; the texts that it reasons in are not read.

    Args:
        completion_text: the completion, raw.
        finish: why the model stopped.

    Returns:
        The texts with `ok`, or the status that says why there are none.
    """
    return ParsedRelated(*_read(completion_text, finish, _answer))


def parse_structured_labelled(
    completion_text: str, labels: Collection[str], finish: Finish = Finish.UNKNOWN
) -> ParsedDetection:
    """Read `{"PII": {"LABEL": ["value", ...]}}`.

    Args:
        completion_text: the completion, raw.
        labels: those that may come.
        finish: why the model stopped.

    Returns:
        Pairs of value and label as those of one subject, with `ok`, or the status that says why
        there are none.
    """
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
    (found,) = _members(value, "PII")
    if not isinstance(found, dict) or not found.keys() <= set(labels):
        raise _ShapeError
    pairs = [(_text(each), label) for label, values in found.items() for each in _items(values)]
    return (tuple(pairs),) if pairs else ()


def _answer(value: object) -> tuple[str, ...]:
    if not isinstance(value, dict) or "answer" not in value:
        raise _ShapeError
    reasoning = {key: said for key, said in value.items() if key != "answer"}
    if not all(isinstance(said, str) for said in reasoning.values()):
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
