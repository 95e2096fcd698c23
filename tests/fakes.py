"""Fake models and a fake progress for tests."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from pii_bench.models.base import Completion, Finish, Sampling
from pii_bench.prompting.strategies import get_strategy, load_prompt
from pii_bench.runs.progress import Progress
from pii_bench.systems.prompted import PromptedSystem

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pii_bench.models.base import Request


def answer_nothing(_: Request) -> Completion:
    return Completion("### Answer: []", Finish.STOP)


class FakeModel:
    """A `Model` that answers with a function and records the samples it is asked about."""

    def __init__(
        self,
        answer: Callable[[Request], Completion] = answer_nothing,
        *,
        name: str = "fake/one",
        identity: Mapping[str, str] | None = None,
        endpoint: str | None = None,
    ) -> None:
        self.name = name
        self.endpoint = endpoint
        self.identity = identity or {}
        self.asked: list[str] = []
        self.peak = 0
        self._answer = answer
        self._active = 0

    async def complete(self, request: Request) -> Completion:
        self.asked.append(request.sample_id)
        self._active += 1
        self.peak = max(self.peak, self._active)
        await asyncio.sleep(0)
        self._active -= 1
        return self._answer(request)

    async def close(self) -> None:
        pass


def fake_system(
    model: FakeModel, strategy: str = "naive", sampling: Sampling | None = None
) -> PromptedSystem:
    return PromptedSystem(model, load_prompt(get_strategy(strategy)), sampling or Sampling())


class RecordingProgress(Progress):
    """A `Progress` that records the events of a run."""

    def __init__(self) -> None:
        self.start: tuple[int, int] | None = None
        self.failed: list[bool] = []
        self.waits: list[tuple[int, int]] = []
        self.notes: list[str] = []

    def started(self, done: int, total: int) -> None:
        self.start = done, total

    def advanced(self, *, failed: bool) -> None:
        self.failed.append(failed)

    def waiting(self, *, finished: int, total: int) -> None:
        self.waits.append((finished, total))

    def note(self, what: str) -> None:
        self.notes.append(what)
