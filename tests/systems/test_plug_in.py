from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

import pytest

from pii_bench.datasets.catalog import load_dataset
from pii_bench.runs.responses import read_response
from pii_bench.systems.catalog import SystemOptions, build_systems
from pii_bench.systems.plug_in import fault_of
from pii_bench.tasks import Status, Task

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pii_bench.systems.base import System

SAMPLE = load_dataset("demo").samples[0]

MODULE = """
from pii_bench.models.base import CallError, Completion
from pii_bench.systems.base import SystemCard
from pii_bench.tasks import Task

class Mine:
    card = SystemCard("mine", "{prompt}", "", Task.DETECTION, oracle=False, settings={{}})
    def request_hash(self, sample): return sample.id
    async def respond(self, sample): {body}
    async def close(self): pass

def systems(): return [Mine()]
"""

DETECTOR = """
from pii_bench.scorer.locate import DetectedSpan
from pii_bench.systems.composed import compose_systems
from pii_bench.systems.parts import DetectedEntities, PredictedRelevance
from pii_bench.systems.relevance.catalog import build_relevance
from pii_bench.taxonomy import PiiType

class Mine:
    name, identity = "mine", {{}}
    def detect(self, text): return [DetectedSpan({span}, PiiType.PER)]

def systems():
    return compose_systems(DetectedEntities(Mine()), PredictedRelevance(build_relevance("all")))
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield tmp_path
    sys.modules.pop("mine", None)


def loaded(folder: Path, body: str, prompt: str = "system") -> System:
    sys.modules.pop("mine", None)
    (folder / "mine.py").write_text(MODULE.format(body=body, prompt=prompt), encoding="utf-8")
    # Python compares times to the second before it reads a module again.
    for compiled in folder.glob("__pycache__/*"):
        compiled.unlink()
    return build_systems("python:mine:systems", SystemOptions())[0]


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("raise ValueError(sample.description)", "error: the plug-in raised ValueError"),
        ("return 'Lee'", "error: the plug-in returned str, not Prediction"),
    ],
)
def test_a_fault_of_its_code_is_a_malformed_answer(folder: Path, body: str, text: str) -> None:
    response = asyncio.run(loaded(folder, body).respond(SAMPLE))

    assert getattr(response, "text", None) == text
    assert read_response(Task.DETECTION, response, "text").status is Status.MALFORMED


@pytest.mark.parametrize(
    ("span", "kept"),
    [
        ("0, 3", True),
        ("0, len(text)", True),
        # Python would cut these, or count them from the end.
        ("0, len(text) + 1", False),
        ("len(text), len(text) + 9", False),
        ("-4, 3", False),
        ("-4, -1", False),
        ("3, 3", False),
        ("5, 3", False),
    ],
)
def test_a_span_that_is_not_in_the_text_fails_the_sample(
    folder: Path, span: str, kept: bool
) -> None:
    (folder / "mine.py").write_text(DETECTOR.format(span=span), encoding="utf-8")
    system, _ = build_systems("python:mine:systems", SystemOptions())

    response = asyncio.run(system.respond(SAMPLE))

    assert fault_of(response) == (None if kept else "the plug-in raised ValueError")
    status = read_response(Task.DETECTION, response, "text").status
    assert status is (Status.OK if kept else Status.MALFORMED)


def test_an_entity_that_is_not_in_the_text_is_an_answer(folder: Path) -> None:
    system = loaded(folder, """return Completion('Subject1{"Nemo Nowhere": "PER"}')""")

    response = asyncio.run(system.respond(SAMPLE))

    assert fault_of(response) is None
    assert read_response(Task.DETECTION, response, "text").status is Status.OK


def test_without_a_prompt_its_task_names_it(folder: Path) -> None:
    system = loaded(folder, "return Completion('{}')", prompt="")

    assert (system.card.prompt, system.card.task) == ("detection", Task.DETECTION)


def test_what_may_pass_is_raised(folder: Path) -> None:
    system = loaded(folder, "raise CallError('timeout')")

    with pytest.raises(Exception, match=r"^timeout$"):
        asyncio.run(system.respond(SAMPLE))


def test_other_code_is_another_system(folder: Path) -> None:
    one, same, other = (
        loaded(folder, f"return Completion('{text}')") for text in ("{}", "{}", "[]")
    )

    assert one.request_hash(SAMPLE) == same.request_hash(SAMPLE) != other.request_hash(SAMPLE)
    assert one.card.settings["source"] != other.card.settings["source"]
