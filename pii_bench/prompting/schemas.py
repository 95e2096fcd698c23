"""What a prompt asks for: labels with what they mark, and JSON Schemas of answers.

The schemas are for runs in which the provider enforces the form (`--output schema`). Every object
has required properties alone and no others, and no schema bounds a length: that is what every
provider takes. Properties are written in the order of the schema, so what a strategy reasons in
is before its answer.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from pii_bench.models.base import AnswerSchema
from pii_bench.tasks import Task
from pii_bench.taxonomy import CATEGORIES, PiiType, name_in, taxonomy

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pii_bench.prompting.strategies import Strategy
    from pii_bench.taxonomy import Meaning

PAPER: Final = "paper"
"""The taxonomy whose labels are our types."""

_KINDS: Final[Mapping[PiiType, str]] = MappingProxyType(
    {
        PiiType.PER: "Name",
        PiiType.CODE: "Number or string that identifies somebody",
        PiiType.LOC: "Place",
        PiiType.ORG: "Organization",
        PiiType.DEM: "Attribute of a person",
        PiiType.DATETIME: "Date or time",
        PiiType.QUANTITY: "Sum of money or share",
    }
)

Output: TypeAlias = Literal["text", "schema"]
"""Who makes the form of an answer: the prompt's words, or the provider."""

_TEXT: Mapping[str, Any] = {"type": "string"}


def definitions(name: str) -> Mapping[str, str]:
    """Label to what it marks, in the order of the table; empty where the table does not say.

    Of the paper's taxonomy the seven types alone. Labels that differ from another in a running
    number (`LASTNAME1`) are not asked for: some releases of a dataset number a repeated label.

    Raises:
        UnknownNameError: there is no such taxonomy.
    """
    labels = taxonomy(name)
    if name == PAPER:
        return MappingProxyType({each.value: ", ".join(CATEGORIES[each]) for each in PiiType})
    return MappingProxyType(
        {
            label: _definition(label, meaning)
            for label, meaning in labels.items()
            if name_in({key: labels[key] for key in labels if key != label}, label) is None
        }
    )


def asked_as(asked: Mapping[str, str], meaning: Meaning | None, label: str) -> str | None:
    """The label among those asked for that a dataset's label stands for; None for none."""
    if label in asked:
        return label
    if meaning is not None and meaning.type in asked:
        return meaning.type
    bare = label.rstrip("0123456789").removesuffix("_")
    return bare if bare in asked else None


def _definition(label: str, meaning: Meaning) -> str:
    if meaning.category is not None:
        return f"Part of: {meaning.category}" if meaning.part else meaning.category
    datafog = (meaning.datafog or "").replace("_", " ").capitalize()
    if datafog and datafog.lower() != label.replace("_", " ").lower():
        return datafog
    return "" if meaning.type is None else _KINDS[meaning.type]


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
