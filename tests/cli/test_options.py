from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from pii_bench.cli import main
from tests.builders import write_lines

if TYPE_CHECKING:
    from tests.cli.conftest import Capsys

PLUG_IN: Final = """
from types import SimpleNamespace
from pii_bench.systems.base import SystemCard
from pii_bench.tasks import Task

def systems():
    tasks = (Task.DETECTION, Task.QUERY_RELATED)
    cards = [SystemCard("mine", "system", "", t, oracle=False, settings={}) for t in tasks]
    return [SimpleNamespace(card=c, respond=0, request_hash=0, close=close) for c in cards]

async def close():
    pass
"""
MASK: Final = ("mask", "rows.jsonl", "--column", "text", "--query", "Q", "--out", "o.jsonl")
RUN: Final = ("run", "--dataset", "demo")
FAR: Final = ("--model", "openai/m", "--base-url", "https://models.example/v1")


@pytest.mark.parametrize(
    ("command", "model", "what"),
    [
        (MASK, FAR, "(https://models.example/v1), which is not this machine"),
        (RUN, FAR, ", which is not this machine; use --concurrency for other machines"),
        (
            MASK,
            ("--model", "python:plug_ray:systems"),
            "set its card's unmasked_text_to to 'th",
        ),
    ],
)
def test_ray_refuses_systems_that_are_not_of_this_machine(
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capsys,
    command: tuple[str, ...],
    model: tuple[str, ...],
    what: str,
) -> None:
    Path("plug_ray.py").write_text(PLUG_IN)
    monkeypatch.syspath_prepend(Path.cwd())
    write_lines(Path("rows.jsonl"), [{"text": "Ann Lee"}])

    assert main([*command, *model, "--engine", "ray"]) == 2

    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("pii-bench: --engine ray is for systems of this machine; '")
    assert what in error
    assert ("--concurrency" in error) is (command == RUN)
