from __future__ import annotations

import json
import re
import shutil
from typing import TYPE_CHECKING, get_args

import pytest

from pii_bench.datasets.catalog import load_dataset
from pii_bench.errors import PiiBenchError, PromptError, UnknownNameError
from pii_bench.prompting.schemas import Output, answer_schema
from pii_bench.prompting.strategies import (
    DETECTION,
    STRATEGIES,
    Strategy,
    get_strategy,
    load_prompt,
)
from pii_bench.prompting.template import read_prompt_text
from pii_bench.resources import PROMPTS
from pii_bench.tasks import Task
from tests.builders import make_sample

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

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


@pytest.mark.parametrize("strategy", ALL, ids=lambda strategy: strategy.name)
def test_what_is_sent(strategy: Strategy, assert_golden: Callable[[str, str], None]) -> None:
    (message,) = load_prompt(strategy).messages(SAMPLE)

    assert message.role == "user"
    assert_golden(f"prompts/{strategy.name}.txt", message.content + "\n")


@pytest.mark.parametrize("strategy", FORMED, ids=lambda strategy: strategy.name)
def test_what_is_sent_with_a_schema(
    strategy: Strategy, assert_golden: Callable[[str, str], None]
) -> None:
    (message,) = load_prompt(strategy, output="schema").messages(SAMPLE)

    assert_golden(f"prompts/{strategy.name}+schema.txt", message.content + "\n")


def test_a_text_is_written_into_no_schema() -> None:
    with pytest.raises(PiiBenchError, match="'rewrite' has no schema"):
        load_prompt(STRATEGIES["rewrite"], output="schema")


def test_the_strategies_of_the_paper_and_ours() -> None:
    assert list(STRATEGIES) == [
        "naive",
        "naive-choice",
        "self-cot",
        "auto-cot",
        "self-consistency",
        "ps-cot",
        "self-consistency-vote",
        "json",
        "rewrite",
    ]
    detecting = [each.name for each in ALL if each.task is Task.DETECTION]
    assert detecting == ["detection", "json"]
    assert {each.task for each in ALL} == set(Task) - {Task.MASKING}


def test_only_the_strategy_that_is_told_gold_is_an_oracle() -> None:
    assert [strategy.name for strategy in ALL if strategy.oracle] == ["naive-choice"]
    assert [strategy.name for strategy in ALL if "choices" in strategy.fields] == ["naive-choice"]


def test_only_the_vote_is_asked_several_times() -> None:
    assert [strategy.name for strategy in ALL if strategy.voted] == ["self-consistency-vote"]


def test_every_file_of_prompts_belongs_to_a_strategy() -> None:
    used = {f"{strategy.text or strategy.name}.txt" for strategy in ALL}
    used |= {strategy.demonstrations for strategy in ALL if strategy.demonstrations}
    used |= {f"schema.{answer_schema(strategy).name}.txt" for strategy in ALL}

    assert {path.name for path in PROMPTS.glob("*.txt")} == used


def test_the_choices_are_the_gold_entities_in_the_order_of_the_text() -> None:
    (message,) = load_prompt(STRATEGIES["naive-choice"]).messages(SAMPLE)

    assert "\n- Bo Ray\n- Ann Lee\n- 32\n- Acme\n\n" in message.content


def test_a_sample_without_query_can_be_detected() -> None:
    (message,) = load_prompt(DETECTION).messages(make_sample(query=None, related=[]))

    assert "Description:\nAnn Lee is 32.\n" in message.content


def test_the_near_match_of_an_unknown_strategy_is_offered() -> None:
    with pytest.raises(UnknownNameError, match=r"^unknown strategy 'self_cot'; did you mean 'self"):
        get_strategy("self_cot")


def test_detection_is_no_strategy() -> None:
    with pytest.raises(UnknownNameError, match=r"^unknown strategy 'detection' \(allowed: naive, "):
        get_strategy("detection")


@pytest.mark.parametrize("strategy", ALL, ids=lambda strategy: strategy.name)
def test_every_placeholder_is_needed(prompts: Path, strategy: Strategy) -> None:
    path = prompts / f"{strategy.text or strategy.name}.txt"
    text = path.read_text(encoding="utf-8")

    for name in strategy.fields:
        path.write_text(text.replace(f"{{{{{name}}}}}", ""), encoding="utf-8")
        with pytest.raises(PromptError, match=f": no placeholder for {name}$"):
            load_prompt(strategy, prompts)


@pytest.mark.parametrize("strategy", ALL, ids=lambda strategy: strategy.name)
def test_no_other_placeholder_is_filled(prompts: Path, strategy: Strategy) -> None:
    with (prompts / f"{strategy.text or strategy.name}.txt").open("a", encoding="utf-8") as file:
        file.write("{{gold}}")

    with pytest.raises(PromptError, match=r": nothing fills gold \(allowed: .*description"):
        load_prompt(strategy, prompts)


def test_each_prompt_has_its_own_hash() -> None:
    own = [strategy for strategy in ALL if strategy.text is None]
    prompts = [load_prompt(each) for each in own]
    prompts += [load_prompt(each, output="schema") for each in own if each in FORMED]

    assert len({prompt.sha256 for prompt in prompts}) == len(prompts) == 2 * len(own) - 1


@pytest.mark.parametrize("output", OUTPUTS)
def test_the_vote_is_asked_what_self_cot_asks(output: Output) -> None:
    vote = load_prompt(STRATEGIES["self-consistency-vote"], output=output)
    thought = load_prompt(STRATEGIES["self-cot"], output=output)

    assert vote.sha256 == thought.sha256
    assert vote.messages(SAMPLE) == thought.messages(SAMPLE)


@pytest.mark.parametrize("strategy", FORMED, ids=lambda strategy: strategy.name)
def test_a_schema_adds_one_paragraph_and_a_name(strategy: Strategy) -> None:
    text, schema = load_prompt(strategy), load_prompt(strategy, output="schema")
    (before,), (after,) = text.messages(SAMPLE), schema.messages(SAMPLE)

    assert (text.name, text.schema) == (strategy.name, None)
    assert (schema.name, schema.schema) == (f"{strategy.name}+schema", answer_schema(strategy))
    assert after.content.startswith(before.content + "\n\n")
    added = after.content.removeprefix(before.content).strip()
    assert "\n" not in added
    assert "JSON object" in added


def test_the_paragraph_names_every_key_of_its_schema_in_their_order() -> None:
    for strategy in FORMED:
        prompt = load_prompt(strategy, output="schema")
        assert prompt.schema is not None
        places = [prompt.instruction.find(f'"{key}"') for key in prompt.schema.schema["required"]]
        assert -1 not in places
        assert places == sorted(places)


def test_the_paragraph_is_in_the_hash(prompts: Path) -> None:
    text = load_prompt(DETECTION, prompts)
    schema = load_prompt(DETECTION, prompts, output="schema")
    (prompts / "schema.subjects.txt").write_text("As JSON.", encoding="utf-8")

    assert load_prompt(DETECTION, prompts).sha256 == text.sha256
    assert load_prompt(DETECTION, prompts, output="schema").sha256 != schema.sha256


@pytest.mark.parametrize("strategy", ALL, ids=lambda strategy: strategy.name)
def test_the_hash_changes_with_every_text_of_the_prompt(prompts: Path, strategy: Strategy) -> None:
    names = [f"{strategy.text or strategy.name}.txt", *filter(None, [strategy.demonstrations])]
    hashes = {load_prompt(strategy, prompts).sha256}

    for name in names:
        with (prompts / name).open("a", encoding="utf-8") as file:
            file.write(".")
        hashes.add(load_prompt(strategy, prompts).sha256)

    assert len(hashes) == len(names) + 1


def test_the_hash_does_not_change_with_another_prompt(prompts: Path) -> None:
    before = load_prompt(STRATEGIES["naive"], prompts).sha256
    (prompts / "self-cot.txt").write_text("{{description}} {{query}}")

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
