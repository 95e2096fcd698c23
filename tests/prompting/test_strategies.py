"""Prompt files, the prompts that are sent, and the schemas of their answers."""

from __future__ import annotations

import json
import re
import shutil
from typing import TYPE_CHECKING, Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_bench.datasets.catalog import load_dataset
from pii_bench.errors import PiiBenchError, PromptError, UnknownNameError
from pii_bench.files import PROMPTS
from pii_bench.prompting.parsing.answers import (
    parse_structured_detection,
    parse_structured_labelled,
    parse_structured_related,
)
from pii_bench.prompting.strategies import (
    DETECTION,
    STRATEGIES,
    Output,
    Strategy,
    Template,
    answer_schema,
    content_hash,
    get_strategy,
    load_prompt,
    load_template,
    read_prompt_text,
)
from pii_bench.tasks import Task
from tests.builders import make_sample

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

FIELDS = frozenset({"description", "query"})


def prompt_file(folder: Path, text: str) -> Path:
    path = folder / "naive.txt"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("text", "rendered"),
    [
        ("\n D: {{description}}\nQ: {{query}}\n\n", "D: Ann\nQ: Why?"),
        ("{{query}} {{description}} {{query}}", "Why? Ann Why?"),
        # Single braces and dollars are text.
        (
            'Subject1{"text": "TYPE"} }} $query ${query} $$ {{query}} {{description}}',
            'Subject1{"text": "TYPE"} }} $query ${query} $$ Why? Ann',
        ),
    ],
)
def test_placeholders_are_filled_and_white_space_around_is_removed(
    tmp_path: Path, text: str, rendered: str
) -> None:
    template = load_template(prompt_file(tmp_path, text), FIELDS)

    assert template.render({"description": "Ann", "query": "Why?"}) == rendered


value_texts = st.text() | st.sampled_from(["{{query}} \\1 $query", "{{description}}"])


@given(value_texts, value_texts)
def test_values_stay_as_they_are_also_where_they_look_like_a_placeholder(
    description: str, query: str
) -> None:
    template = Template("<{{description}}|{{query}}>")

    rendered = template.render({"description": description, "query": query})

    assert rendered == f"<{description}|{query}>"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("{{description}}", "no placeholder for query"),
        ("nothing", "no placeholder for description, query"),
        (
            "{{description}} {{query}} {{choices}}",
            "nothing fills choices (allowed: description, query)",
        ),
        (
            "{{description}} {{Query}} {{query}}",
            "nothing fills Query (allowed: description, query)",
        ),
        (
            "{{description}}\n{{ query }}",
            "line 2: '{{' that opens no placeholder",
        ),
        (
            "{{description}} {{query}} {{",
            "line 1: '{{' that opens no placeholder",
        ),
        ("", "the file is empty"),
        (" \n", "the file is empty"),
    ],
)
def test_a_prompt_that_does_not_fit_its_strategy(tmp_path: Path, text: str, what: str) -> None:
    path = prompt_file(tmp_path, text)

    with pytest.raises(PromptError) as caught:
        load_template(path, FIELDS)

    assert str(caught.value) == f"{path}: {what}"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "No such file or directory"),
        (b"\xff{{description}}{{query}}", r"naive\.txt: .*invalid start byte"),
    ],
)
def test_a_prompt_that_cannot_be_read(tmp_path: Path, content: bytes | None, message: str) -> None:
    path = tmp_path / "naive.txt"
    if content is not None:
        path.write_bytes(content)

    with pytest.raises(PromptError, match=message):
        load_template(path, FIELDS)


def test_the_hash_of_one_text() -> None:
    # printf '\0\0\0\0\0\0\0\1a' | sha256sum
    assert content_hash("a") == "3b196fd4907bedf51c3090e9835f2f7cb61e7ee1b2299ea3b8fed9b4183a822a"


@given(st.lists(st.text(alphabet="ab", max_size=2), max_size=3), st.data())
def test_texts_that_differ_have_hashes_that_differ(texts: list[str], data: st.DataObject) -> None:
    others = data.draw(st.lists(st.text(alphabet="ab", max_size=2), max_size=3))

    assert (content_hash(*texts) == content_hash(*others)) == (texts == others)


ALL = [DETECTION, *STRATEGIES.values()]
OUTPUTS: tuple[Output, ...] = get_args(Output)
FORMED = [each for each in ALL if each.name != "rewrite"]
"""Those whose answers have a form."""

SAMPLE = make_sample(
    description="Bo Ray {{query}} met Ann Lee, 32, at Acme.",
    query="Is $5 {enough} at my age?",
    subjects=[
        {
            "id": "A",
            "entities": [
                {"text": "32", "type": "DEM"},
                {"text": "Acme", "type": "ORG"},
                {"text": "Ann Lee", "type": "PER"},
            ],
        },
        {
            "id": "B",
            "entities": [{"text": "Acme", "type": "ORG"}, {"text": "Bo Ray", "type": "PER"}],
        },
    ],
)


@pytest.fixture
def prompts(tmp_path: Path) -> Path:
    """A copy of the prompts that a test may change."""
    return shutil.copytree(PROMPTS, tmp_path / "prompts")


@pytest.mark.parametrize(
    ("strategy", "output", "name"),
    [
        *((each, "text", each.name) for each in ALL),
        *((each, "schema", f"{each.name}+schema") for each in FORMED),
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_what_is_sent(
    strategy: Strategy, output: Output, name: str, assert_golden: Callable[[str, str], None]
) -> None:
    prompt = load_prompt(strategy, output=output)
    (message,) = prompt.messages(SAMPLE)

    assert (prompt.name, message.role) == (name, "user")
    assert_golden(f"prompts/{name}.txt", message.content + "\n")


def test_a_text_is_written_into_no_schema() -> None:
    with pytest.raises(PiiBenchError, match="'rewrite' has no schema"):
        load_prompt(STRATEGIES["rewrite"], output="schema")


def test_only_the_strategy_that_is_told_gold_is_an_oracle() -> None:
    assert [strategy.name for strategy in ALL if strategy.oracle] == ["naive-choice"]
    assert [strategy.name for strategy in ALL if "choices" in strategy.fields] == ["naive-choice"]


def test_every_file_of_prompts_belongs_to_a_strategy() -> None:
    used = {f"{strategy.text or strategy.name}.txt" for strategy in ALL}
    used |= {"auto-cot.demonstrations.txt"}
    used |= {f"schema.{answer_schema(strategy).name}.txt" for strategy in ALL}

    assert {path.name for path in PROMPTS.glob("*.txt")} == used


def test_a_sample_without_query_can_be_detected() -> None:
    (message,) = load_prompt(DETECTION).messages(make_sample(query=None, related=[]))

    assert "Description:\nAnn Lee is 32.\n" in message.content


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("self_cot", "^unknown strategy 'self_cot'; did you mean 'self"),
        ("detection", r"^unknown strategy 'detection' \(allowed: naive, "),
    ],
)
def test_an_unknown_strategy(name: str, message: str) -> None:
    with pytest.raises(UnknownNameError, match=message):
        get_strategy(name)


@pytest.mark.parametrize("output", OUTPUTS)
def test_the_vote_is_asked_what_self_cot_asks(output: Output) -> None:
    vote = load_prompt(STRATEGIES["self-consistency-vote"], output=output)
    thought = load_prompt(STRATEGIES["self-cot"], output=output)

    assert vote.sha256 == thought.sha256
    assert vote.messages(SAMPLE) == thought.messages(SAMPLE)


@pytest.mark.parametrize("strategy", FORMED, ids=lambda strategy: strategy.name)
def test_a_schema_adds_one_paragraph_with_its_keys_in_order(strategy: Strategy) -> None:
    schema = load_prompt(strategy, output="schema")
    (before,), (after,) = load_prompt(strategy).messages(SAMPLE), schema.messages(SAMPLE)

    assert schema.schema == answer_schema(strategy)
    assert after.content == f"{before.content}\n\n{schema.instruction}"
    assert "\n" not in schema.instruction
    assert "JSON object" in schema.instruction
    places = [schema.instruction.find(f'"{key}"') for key in schema.schema.schema["required"]]
    assert -1 not in places
    assert places == sorted(places)


@pytest.mark.parametrize("strategy", ALL, ids=lambda strategy: strategy.name)
def test_the_hash_changes_with_every_text_of_the_prompt(prompts: Path, strategy: Strategy) -> None:
    names = [f"{strategy.text or strategy.name}.txt"]
    if strategy.name == "auto-cot":
        names.append("auto-cot.demonstrations.txt")
    output: Output = "text"
    if strategy in FORMED:
        names.append(f"schema.{answer_schema(strategy).name}.txt")
        output = "schema"
    hashes = {load_prompt(strategy, prompts, output).sha256}

    for name in names:
        with (prompts / name).open("a", encoding="utf-8") as file:
            file.write(".")
        hashes.add(load_prompt(strategy, prompts, output).sha256)

    assert len(hashes) == len(names) + 1


@pytest.mark.parametrize("other", ["self-cot.txt", "schema.answer.txt"])
def test_the_hash_does_not_change_with_another_text(prompts: Path, other: str) -> None:
    before = load_prompt(STRATEGIES["naive"], prompts).sha256
    (prompts / other).write_text("{{description}} {{query}}", encoding="utf-8")

    assert load_prompt(STRATEGIES["naive"], prompts).sha256 == before


def test_demonstrations_that_are_not_there(prompts: Path) -> None:
    (prompts / "auto-cot.demonstrations.txt").unlink()

    with pytest.raises(PromptError, match=r"auto-cot\.demonstrations\.txt: .*No such file"):
        load_prompt(STRATEGIES["auto-cot"], prompts)


@pytest.fixture(scope="module")
def demonstrations() -> str:
    return read_prompt_text(PROMPTS / "auto-cot.demonstrations.txt")


def test_the_answer_of_each_demonstration_stands_in_its_description(demonstrations: str) -> None:
    shape = re.compile(
        r"Example (\d)\n\nDescription: (.+?)\n\nQuery: (.+?)\n\n"
        r"### Thought: .+?\n\n### Answer: (.+?)(?:\n\n|$)",
        re.DOTALL,
    )
    examples = shape.findall(demonstrations)

    assert [number for number, *_ in examples] == ["1", "2", "3"]
    for _, description, query, answer in examples:
        texts = json.loads(answer)
        assert texts
        assert all(text in description and text not in query for text in texts)


def words(text: str) -> list[str]:
    return re.findall(r"\w+(?:[.,]\d+)*", text)


def runs(text: str, length: int = 5) -> set[tuple[str, ...]]:
    found = words(text.casefold())
    return {tuple(found[at : at + length]) for at in range(len(found) - length + 1)}


def test_demonstrations_share_nothing_with_a_test_set(demonstrations: str) -> None:
    told = f" {' '.join(words(demonstrations))} "

    for sample in load_dataset("demo").samples:
        values = {" ".join(words(entity.text)) for entity in sample.entities}
        assert not {value for value in values if f" {value} " in told}, sample.id
        shared = runs(demonstrations) & (runs(sample.description) | runs(sample.query or ""))
        assert not shared, sample.id


def instance(schema: Mapping[str, Any]) -> Any:
    """The smallest value with one item in each list."""
    match schema["type"]:
        case "object":
            return {key: instance(value) for key, value in schema["properties"].items()}
        case "array":
            return [instance(schema["items"])]
        case _:
            return schema.get("enum", ["32"])[0]


@pytest.mark.parametrize(
    ("strategy", "name", "answer"),
    [
        (DETECTION, "subjects", {"subjects": [{"entities": [{"text": "32", "type": "PER"}]}]}),
        (STRATEGIES["json"], "pii", {"PII": {"AGE": ["32"], "SEX": ["32"]}}),
        *(
            (STRATEGIES[strategy], "_".join(keys), dict.fromkeys(keys, "32") | {"answer": ["32"]})
            for strategy, keys in {
                "naive": ["answer"],
                "naive-choice": ["answer"],
                "self-cot": ["thought", "answer"],
                "auto-cot": ["thought", "answer"],
                "self-consistency": ["reflections", "summary", "answer"],
                "ps-cot": ["plan", "thought", "answer"],
                "self-consistency-vote": ["thought", "answer"],
            }.items()
        ),
    ],
)
def test_the_schema_of_an_answer(strategy: Strategy, name: str, answer: dict[str, Any]) -> None:
    schema = answer_schema(strategy, ["AGE", "SEX"])

    assert schema.name == name
    # In this order: reasoning comes before the answer.
    assert json.dumps(instance(schema.schema)) == json.dumps(answer)


def test_a_schema_requires_every_key_and_allows_no_other() -> None:
    types = ["PER", "CODE", "LOC", "ORG", "DEM", "DATETIME", "QUANTITY"]
    entity = {
        "type": "object",
        "properties": {"text": {"type": "string"}, "type": {"type": "string", "enum": types}},
        "required": ["text", "type"],
        "additionalProperties": False,
    }
    subject = {
        "type": "object",
        "properties": {"entities": {"type": "array", "items": entity}},
        "required": ["entities"],
        "additionalProperties": False,
    }
    assert answer_schema(DETECTION).schema == {
        "type": "object",
        "properties": {"subjects": {"type": "array", "items": subject}},
        "required": ["subjects"],
        "additionalProperties": False,
    }
    assert answer_schema(STRATEGIES["self-cot"]).schema == {
        "type": "object",
        "properties": {
            "thought": {"type": "string"},
            "answer": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["thought", "answer"],
        "additionalProperties": False,
    }


def test_what_has_the_form_of_a_schema_is_read() -> None:
    said = json.dumps(instance(answer_schema(DETECTION).schema))

    assert parse_structured_detection(said).payload == ((("32", "PER"),),)
    said = json.dumps(instance(answer_schema(STRATEGIES["json"], ["AGE", "SEX"]).schema))
    assert parse_structured_labelled(said, ["AGE", "SEX"]).payload == (
        (("32", "AGE"), ("32", "SEX")),
    )
    for strategy in STRATEGIES.values():
        if strategy.task is Task.DETECTION:
            continue
        said = json.dumps(instance(answer_schema(strategy).schema))
        assert parse_structured_related(said).payload == ("32",)
