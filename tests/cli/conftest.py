"""Answers, folders and servers for the tests of commands."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pytest

from pii_bench.cli import main
from pii_bench.datasets.catalog import load_dataset
from pii_bench.models.catalog import CUSTOM_ENDPOINT_KEY, PROVIDERS
from pii_bench.prompting.strategies import DETECTION, get_strategy, load_prompt
from pii_bench.prompting.targets import detection_answer, related_answer
from pii_bench.tasks import Task
from tests.batch_server import Item
from tests.builders import read_csv, write_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pii_bench.datasets.sample import Sample
    from pii_bench.prompting.strategies import Output, Prompt
    from tests.batch_server import BatchServer, StoredJob
    from tests.protocol_server import ProtocolServer, ReceivedRequest, Reply

Capsys: TypeAlias = pytest.CaptureFixture[str]

_OUTPUTS: Final[tuple[Output, ...]] = ("text", "schema")


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run in an empty folder, without keys."""
    monkeypatch.chdir(tmp_path)
    for variable in (CUSTOM_ENDPOINT_KEY, *(p.key_variable for p in PROVIDERS.values())):
        monkeypatch.delenv(variable, raising=False)
    return tmp_path


@pytest.fixture
def no_jitter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait between attempts no longer than the server asks."""
    monkeypatch.setattr(Random, "uniform", lambda _, low, high: low)  # noqa: ARG005


@pytest.fixture
def gold_answers(own_folder: Path) -> Path:
    """A replay file with the right answer to every prompt about demo."""
    samples = load_dataset("demo").samples
    answers = [
        *({"id": s.id, "prompt": "detection", "text": detection_answer(s)} for s in samples),
        *({"id": s.id, "text": related_answer(s)} for s in samples),
    ]
    return write_lines(own_folder / "gold.jsonl", answers)


def run_chat(server: ProtocolServer | BatchServer, *options: str, dataset: str = "demo") -> int:
    """Run a chat model behind a server that speaks OpenAI's protocol; `options` come last."""
    base_url = f"{server.url}/v1"
    asked = ("--model", "openai/m", "--base-url", base_url, "--dataset", dataset)
    return main(["run", *asked, *options])


def leaderboard_rows(source: str = "run") -> list[dict[str, str]]:
    """Return the rows of results/leaderboard.csv with this source."""
    return [row for row in read_csv(Path("results/leaderboard.csv")) if row["source"] == source]


def table_lines(shown: str) -> list[list[str]]:
    """Return the cells of the tables in a text, line by line, with the headers."""
    lines = [line for line in shown.splitlines() if re.match(r"\|(?![-:]+\|)", line)]
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]


def right(reply: Callable[[str], Reply]) -> Callable[[ReceivedRequest], Reply]:
    """Return a step for a `ProtocolServer` that replies with the right answer."""
    return lambda request: reply(answer_to(request.body))


def right_items(job: StoredJob) -> dict[str, Item]:
    """Return the right answer to each request of a batch."""
    return {name: Item(text=answer_to(body)) for name, body in job.requests.items()}


def answer_to(body: Mapping[str, Any]) -> str:
    """Return the right answer to a request, which must have one user message."""
    (message,) = body["messages"]
    assert message["role"] == "user"
    return _answers()[message["content"]]


@cache
def _answers() -> Mapping[str, str]:
    strategies = (DETECTION, get_strategy("naive"), get_strategy("self-consistency-vote"))
    prompts = [load_prompt(each, output=output) for each in strategies for output in _OUTPUTS]
    return {
        prompt.messages(sample)[0].content: _answer(prompt, sample)
        for prompt in prompts
        for sample in load_dataset("demo").samples
    }


def _answer(prompt: Prompt, sample: Sample) -> str:
    detects = prompt.strategy.task is Task.DETECTION
    if prompt.schema is None:
        return detection_answer(sample) if detects else related_answer(sample)
    if detects:
        subjects = [
            {"entities": [{"text": each.text, "type": each.type} for each in subject.entities]}
            for subject in sample.subjects
        ]
        return json.dumps({"subjects": subjects})
    reasoning = dict.fromkeys(prompt.strategy.reasoning, "They ask for these.")
    return json.dumps({**reasoning, "answer": [related.text for related in sample.related]})
