"""Simulated time, requests, and a fake model with a delay."""

from __future__ import annotations

import asyncio
import selectors
from datetime import date
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pii_bench.models.base import Completion, Message, Request, Sampling, Usage
from pii_bench.models.catalog import Price

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping

T = TypeVar("T")

DOLLAR_A_TOKEN: Final = Price(1e6, 1e6, date(2026, 1, 1), "test")


class _JumpingSelector(selectors.DefaultSelector):
    """Never waits: it advances a clock by the timeouts instead."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise RuntimeError("all tasks wait, and there is no timer")
        self.now += max(0.0, timeout)
        return super().select(0)


class SimulatedLoop(asyncio.SelectorEventLoop):
    """An event loop with simulated time that starts at 0."""

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now


def run(task: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine like `asyncio.run`, in simulated time."""
    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        return runner.run(task)


def now() -> float:
    return asyncio.get_running_loop().time()


def make_request(
    sample_id: str = "s1", *, text: str = "", prompt: str = "naive", max_tokens: int = 100
) -> Request:
    """Return a request; without a text it takes at most 500 tokens, and 600 with the answer."""
    sampling = Sampling(max_tokens=max_tokens)
    return Request(sample_id, prompt, (Message("user", text),), sampling)


class TimedModel:
    """A model that answers after some seconds, and records its calls (`Model`).

    Args:
        answer: returns the answer to the n-th call, from 0, or raises.
        seconds: duration of a call.
    """

    name = "fake/timed"
    endpoint = "https://models.example/v1"

    def __init__(
        self,
        answer: Callable[[int], Completion] = lambda _: Completion("yes", usage=Usage(10, 1)),
        *,
        seconds: float = 1.0,
    ) -> None:
        self.identity: Mapping[str, str] = {"endpoint": self.endpoint}
        self.asked_at: list[float] = []
        self.asked: list[str] = []
        self.in_flight = self.peak = 0
        self.closed = False
        self._answer, self._seconds = answer, seconds

    async def complete(self, request: Request) -> Completion:
        number = len(self.asked)
        self.asked_at.append(now())
        self.asked.append(request.sample_id)
        self.in_flight += 1
        self.peak = max(self.peak, self.in_flight)
        try:
            await asyncio.sleep(self._seconds)
        finally:
            self.in_flight -= 1
        return self._answer(number)

    async def close(self) -> None:
        self.closed = True
