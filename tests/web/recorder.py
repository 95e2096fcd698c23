"""A system that records the texts it receives, for servers with `workers=0`.

Its name is `python:tests.web.recorder:build`. It finds every word with a capital letter, of which
the query needs none; a text with the word FAIL gets no answer.
"""

from __future__ import annotations

import json
import re
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pii_bench.models.base import CallError, Completion, Finish
from pii_bench.systems.base import THIS_MACHINE, SystemCard
from pii_bench.tasks import Task

if TYPE_CHECKING:
    from pii_bench.datasets.sample import Sample
    from pii_bench.systems.base import System

ASKED: Final[list[str]] = []
BEGUN: Final = threading.Event()
"""Set when the first text arrives."""

GATE: Final = threading.Event()
"""Answers wait until this is set."""


@dataclass(frozen=True, slots=True)
class Recorder:
    """A `System` for one of the two tasks."""

    task: Task

    @property
    def card(self) -> SystemCard:
        """A card that says that texts stay on this machine."""
        return SystemCard(
            model="recorder",
            prompt="system",
            prompt_sha256="",
            task=self.task,
            oracle=False,
            settings={},
            unmasked_text_to=THIS_MACHINE,
        )

    def request_hash(self, sample: Sample) -> str:
        """Return an ID, which is never used."""
        return sample.id

    async def respond(self, sample: Sample) -> Completion:
        """Record the text, and answer when `GATE` is set."""
        if self.task is Task.QUERY_RELATED:
            return Completion("### Answer: []", Finish.STOP)
        ASKED.append(sample.description)
        BEGUN.set()
        assert GATE.wait(60)
        if "FAIL" in sample.description:
            raise CallError("server", "HTTP 503")
        entities = dict.fromkeys(re.findall(r"\b[A-Z]\w+", sample.description), "PER")
        return Completion(f"Subject1{json.dumps(entities)}", Finish.STOP)

    async def close(self) -> None:
        """Do nothing."""


def build() -> tuple[System, ...]:
    """Return the systems of both tasks."""
    return Recorder(Task.DETECTION), Recorder(Task.QUERY_RELATED)
