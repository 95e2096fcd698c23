"""A system that notes what it is asked, for servers that mask in a thread of their own.

`python:tests.web.recorder:build` names it. It finds every word with a capital letter, and takes
none as needed; a text with the word FAIL gets no answer.
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
"""Is set when something is asked."""

GATE: Final = threading.Event()
"""Answers wait until it is set."""


@dataclass(frozen=True, slots=True)
class Recorder:
    """One of the two tasks (`System`)."""

    task: Task

    @property
    def card(self) -> SystemCard:
        """It keeps texts here."""
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
        """Never used."""
        return sample.id

    async def respond(self, sample: Sample) -> Completion:
        """Note the text, and answer when the gate is open."""
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
        """Nothing to release."""


def build() -> tuple[System, ...]:
    """Both tasks."""
    return Recorder(Task.DETECTION), Recorder(Task.QUERY_RELATED)
