from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from pii_bench.models.base import AnswerSchema, Completion, Request, Sampling
from pii_bench.prompting.schemas import Output, answer_schema
from pii_bench.prompting.strategies import STRATEGIES, load_prompt
from pii_bench.systems.prompted import PromptedSystem
from tests.builders import make_sample
from tests.fakes import FakeModel

SAMPLE = make_sample("s1")
NAIVE = STRATEGIES["naive"]


def system(output: Output, model: FakeModel | None = None) -> PromptedSystem:
    return PromptedSystem(model or FakeModel(), load_prompt(NAIVE, output=output), Sampling())


@pytest.mark.parametrize(
    ("output", "prompt", "schema"),
    [("text", "naive", None), ("schema", "naive+schema", answer_schema(NAIVE))],
)
def test_what_the_model_is_asked(output: Output, prompt: str, schema: AnswerSchema | None) -> None:
    asked: list[Request] = []

    def answer(request: Request) -> Completion:
        asked.append(request)
        return Completion("[]")

    asyncio.run(system(output, FakeModel(answer)).respond(SAMPLE))

    (request,) = asked
    assert (request.sample_id, request.prompt, request.schema) == ("s1", prompt, schema)


def test_a_schema_is_said_by_the_card() -> None:
    text, schema = system("text").card, system("schema").card

    assert (text.prompt, text.output, text.settings) == (
        "naive",
        "text",
        {"temperature": 0.0, "max_tokens": 2048},
    )
    assert (schema.prompt, schema.output, schema.settings) == (
        "naive+schema",
        "schema",
        {"temperature": 0.0, "max_tokens": 2048, "output": "schema"},
    )


def test_the_order_of_a_schemas_keys_is_part_of_the_request() -> None:
    prompt = load_prompt(STRATEGIES["self-cot"], output="schema")
    assert prompt.schema is not None
    properties = prompt.schema.schema["properties"]
    turned = {**prompt.schema.schema, "properties": dict(reversed(properties.items()))}
    other = replace(prompt, schema=replace(prompt.schema, schema=turned))

    hashes = {
        PromptedSystem(FakeModel(), each, Sampling()).request_hash(SAMPLE)
        for each in (prompt, other)
    }

    assert len(hashes) == 2
