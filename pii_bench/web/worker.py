"""What a process of the pool does: it loads the system once, and answers batches of texts."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pii_bench.errors import PiiBenchError
from pii_bench.models.catalog import ModelOptions
from pii_bench.runs.mask_text import Answers, ask, masking_systems
from pii_bench.systems.base import THIS_MACHINE
from pii_bench.systems.catalog import SystemOptions, build_systems

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pii_bench.runs.mask_text import OnFailure
    from pii_bench.systems.base import System


@dataclass(frozen=True, slots=True)
class Job:
    """A text and what will be asked about it."""

    text: str = field(repr=False)
    query: str = field(repr=False)
    on_failure: OnFailure = "refuse"


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a text got no answer; never a word of the text."""

    reason: str


class Worker:
    """A system with an event loop of its own, in which its clients live.

    Raises:
        PiiBenchError: no such system, or it cannot mask.
    """

    def __init__(self, system: str, base_url: str | None) -> None:
        options = SystemOptions(model=ModelOptions(base_url=base_url))
        self._systems: Sequence[System] = masking_systems(build_systems(system, options))
        self._loop = asyncio.new_event_loop()

    @property
    def recipients(self) -> tuple[str, ...]:
        """Who is sent texts as they are."""
        return tuple(sorted({each.card.unmasked_text_to for each in self._systems}))

    def answer(self, jobs: Sequence[Job]) -> list[Answers | Failure]:
        """One answer a job; where one fails the others do not."""
        return self._loop.run_until_complete(self._answer_all(jobs))

    async def _answer_all(self, jobs: Sequence[Job]) -> list[Answers | Failure]:
        if self.recipients == (THIS_MACHINE,):
            # Local models compute: at the same time each would only take longer.
            return [await self._answer(job) for job in jobs]
        return await asyncio.gather(*map(self._answer, jobs))

    async def _answer(self, job: Job) -> Answers | Failure:
        try:
            return await ask(job.text, job.query, self._systems, on_failure=job.on_failure)
        except PiiBenchError as error:
            return Failure(str(error))

    async def _close_systems(self) -> None:
        for system in self._systems:
            await system.close()

    def close(self) -> None:
        """Release what it holds."""
        self._loop.run_until_complete(self._close_systems())
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()


_WORKERS: Final[dict[tuple[str, str | None], Worker]] = {}


def _own_worker(system: str, base_url: str | None) -> Worker:
    key = (system, base_url)
    if key not in _WORKERS:
        _WORKERS[key] = Worker(system, base_url)
    return _WORKERS[key]


def recipients(system: str, base_url: str | None) -> tuple[str, ...]:
    """In a process of the pool: who is sent texts as they are by a system."""
    return _own_worker(system, base_url).recipients


def answer(system: str, base_url: str | None, jobs: Sequence[Job]) -> list[Answers | Failure]:
    """In a process of the pool: one answer a job."""
    return _own_worker(system, base_url).answer(jobs)


def close_all() -> None:
    """In a process of the pool: release what all its workers hold."""
    while _WORKERS:
        _WORKERS.popitem()[1].close()
