"""JSON Schemas of answers, for runs in which the provider enforces the form (`--output schema`).

Every object has required properties alone and no others, and no schema bounds a length: that
is what every provider takes. Properties are written in the order of the schema, so what a
strategy reasons in is before its answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from pii_bench.models.base import AnswerSchema
from pii_bench.tasks import Task
from pii_bench.taxonomy import PiiType

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pii_bench.prompting.strategies import Strategy

Output: TypeAlias = Literal["text", "schema"]
"""Who makes the form of an answer: the prompt's words, or the provider."""

_TEXT: Mapping[str, Any] = {"type": "string"}


def answer_schema(strategy: Strategy, labels: Iterable[str] = tuple(PiiType)) -> AnswerSchema:
    """The shape of a strategy's answers.

    Detection answers `{"subjects": [{"entities": [{"text": ..., "type": ...}]}]}`, with the
    labels of a taxonomy `{"PII": {"LABEL": ["value", ...]}}`, any other strategy
    `{..., "answer": [...]}` with what it reasons in before the answer.

    Args:
        strategy: whose answers.
        labels: those that are asked for, where they are those of a taxonomy.
    """
    if strategy.labelled:
        values = {str(label): _list(_TEXT) for label in labels}
        return AnswerSchema("pii", _object(PII=_object(**values)))
    if strategy.task is Task.DETECTION:
        types = [pii_type.value for pii_type in PiiType]
        entity = _object(text=_TEXT, type={**_TEXT, "enum": types})
        subject = _object(entities=_list(entity))
        return AnswerSchema("subjects", _object(subjects=_list(subject)))
    reasoning = dict.fromkeys(strategy.reasoning, _TEXT)
    return AnswerSchema(
        "_".join([*strategy.reasoning, "answer"]), _object(**reasoning, answer=_list(_TEXT))
    )


def _object(**properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": [*properties],
        "additionalProperties": False,
    }


def _list(items: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}
