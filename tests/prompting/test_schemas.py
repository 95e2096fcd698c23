from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from pii_bench.prompting.parsing import (
    parse_structured_detection,
    parse_structured_labelled,
    parse_structured_related,
)
from pii_bench.prompting.schemas import answer_schema
from pii_bench.prompting.strategies import DETECTION, STRATEGIES, Strategy
from pii_bench.tasks import Task

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ALL = [DETECTION, *STRATEGIES.values()]


def nodes(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Every schema inside a schema."""
    yield schema
    for child in [*schema.get("properties", {}).values(), *filter(None, [schema.get("items")])]:
        yield from nodes(child)


def instance(schema: Mapping[str, Any]) -> Any:
    """The smallest value with one item in each list."""
    match schema["type"]:
        case "object":
            return {key: instance(value) for key, value in schema["properties"].items()}
        case "array":
            return [instance(schema["items"])]
        case _:
            return schema.get("enum", ["32"])[0]


def test_the_schema_of_detection() -> None:
    schema = answer_schema(DETECTION)

    assert schema.name == "subjects"
    assert instance(schema.schema) == {"subjects": [{"entities": [{"text": "32", "type": "PER"}]}]}
    enums = [node["enum"] for node in nodes(schema.schema) if "enum" in node]
    assert enums == [["PER", "CODE", "LOC", "ORG", "DEM", "DATETIME", "QUANTITY"]]


def test_the_schema_of_labels_has_each_of_them() -> None:
    schema = answer_schema(STRATEGIES["json"], ["AGE", "SEX"])

    assert schema.name == "pii"
    assert instance(schema.schema) == {"PII": {"AGE": ["32"], "SEX": ["32"]}}


@pytest.mark.parametrize(
    ("strategy", "keys"),
    [
        ("naive", ["answer"]),
        ("naive-choice", ["answer"]),
        ("self-cot", ["thought", "answer"]),
        ("auto-cot", ["thought", "answer"]),
        ("self-consistency", ["reflections", "summary", "answer"]),
        ("ps-cot", ["plan", "thought", "answer"]),
        ("self-consistency-vote", ["thought", "answer"]),
    ],
)
def test_reasoning_stands_before_the_answer(strategy: str, keys: list[str]) -> None:
    schema = answer_schema(STRATEGIES[strategy])

    assert list(json.loads(json.dumps(schema.schema))["properties"]) == keys
    assert schema.name == "_".join(keys)


@pytest.mark.parametrize("strategy", ALL, ids=lambda strategy: strategy.name)
def test_every_provider_takes_it(strategy: Strategy) -> None:
    for node in nodes(answer_schema(strategy).schema):
        match node["type"]:
            case "object":
                assert node["required"] == list(node["properties"])
                assert node["additionalProperties"] is False
            case "array":
                assert set(node) == {"type", "items"}
            case name:
                assert name == "string"
                assert set(node) <= {"type", "enum"}


def test_what_has_the_form_of_a_schema_is_read() -> None:
    said = json.dumps(instance(answer_schema(DETECTION).schema))

    assert parse_structured_detection(said).subjects == ((("32", "PER"),),)
    said = json.dumps(instance(answer_schema(STRATEGIES["json"], ["AGE", "SEX"]).schema))
    assert parse_structured_labelled(said, ["AGE", "SEX"]).subjects == (
        (("32", "AGE"), ("32", "SEX")),
    )
    for strategy in STRATEGIES.values():
        if strategy.task is Task.DETECTION:
            continue
        said = json.dumps(instance(answer_schema(strategy).schema))
        assert parse_structured_related(said).texts == ("32",)
