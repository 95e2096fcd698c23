"""Answers, folders and servers for the commands."""

from __future__ import annotations

import csv
import json
import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import pytest

from pii_bench.cli import main
from pii_bench.datasets.catalog import load_dataset
from pii_bench.models import calls
from pii_bench.models.calls import Retry
from pii_bench.models.catalog import CUSTOM_ENDPOINT_KEY, PROVIDERS
from tests.builders import write_lines
from tests.protocol_server import ProtocolServer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pii_bench.datasets.sample import Sample
    from tests.batch_server import BatchServer

Capsys: TypeAlias = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run in an empty folder, without keys."""
    monkeypatch.chdir(tmp_path)
    for variable in (CUSTOM_ENDPOINT_KEY, *(p.key_variable for p in PROVIDERS.values())):
        monkeypatch.delenv(variable, raising=False)
    return tmp_path


@pytest.fixture
def protocol_server() -> Iterator[ProtocolServer]:
    with ProtocolServer() as server:
        yield server


@pytest.fixture
def no_jitter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait before another attempt no longer than the server asks."""
    monkeypatch.setattr(calls, "Retry", partial(Retry, first_wait=0.0))


@pytest.fixture
def gold_answers(own_folder: Path) -> Path:
    """A replay file that answers every prompt about demo rightly."""
    samples = load_dataset("demo").samples
    answers = [
        *({"id": s.id, "prompt": "detection", "text": detection_answer(s)} for s in samples),
        *({"id": s.id, "text": related_answer(s)} for s in samples),
    ]
    return write_lines(own_folder / "gold.jsonl", answers)


def run_chat(server: ProtocolServer | BatchServer, *options: str, dataset: str = "demo") -> int:
    """Run a chat model behind a server that speaks OpenAI's protocol; `options` may say another."""
    base_url = f"{server.url}/v1"
    asked = ("--model", "openai/m", "--base-url", base_url, "--dataset", dataset)
    return main(["run", *asked, *options])


def detection_answer(sample: Sample) -> str:
    lines = [
        json.dumps({entity.text: entity.type for entity in subject.entities}, ensure_ascii=False)
        for subject in sample.subjects
    ]
    return "\n".join(f"Subject{number}{line}" for number, line in enumerate(lines, start=1))


def related_answer(sample: Sample) -> str:
    texts = [related.text for related in sample.related]
    return f"### Answer: {json.dumps(texts, ensure_ascii=False)}"


def leaderboard_rows(source: str = "run") -> list[dict[str, str]]:
    """The rows of results/leaderboard.csv that are of one source."""
    with Path("results/leaderboard.csv").open(encoding="utf-8", newline="") as file:
        return [row for row in csv.DictReader(file) if row["source"] == source]


def table_lines(shown: str) -> list[list[str]]:
    """The cells of each line of the tables in a text, their headers included."""
    lines = [line for line in shown.splitlines() if re.match(r"\|(?![-:]+\|)", line)]
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
