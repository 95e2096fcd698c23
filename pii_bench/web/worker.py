"""What a process of the pool does: it loads the system once, and answers batches of texts."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pii_bench.errors import PiiBenchError
from pii_bench.models.catalog import ModelOptions
from pii_bench.runs.mask_text import Answers, MaskingError, ask, find, masking_systems
from pii_bench.systems.base import THIS_MACHINE
from pii_bench.systems.catalog import SystemOptions, build_systems

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pii_bench.runs.mask_text import OnFailure
    from pii_bench.runs.predictions import Subjects
    from pii_bench.systems.base import System


@dataclass(frozen=True, slots=True)
class Job:
    """A text and what will be asked about it; without a query only what it holds is told."""

    text: str = field(repr=False)
    query: str | None = field(repr=False)
    on_failure: OnFailure = "refuse"


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a text got no answer; never a word of the text."""

    reason: str


class Worker:
    """A system with an event loop of its own, in which its clients live.

    Raises:
        PiiBenchError: no such system.
    """

    def __init__(self, system: str, base_url: str | None) -> None:
        options = SystemOptions(model=ModelOptions(base_url=base_url))
        self._systems: Sequence[System] = build_systems(system, options)
        self._loop = asyncio.new_event_loop()

    @property
    def recipients(self) -> tuple[str, ...]:
        """Who is sent texts as they are.

        Raises:
            PiiBenchError: it cannot mask.
        """
        systems = masking_systems(self._systems)
        return tuple(sorted({each.card.unmasked_text_to for each in systems}))

    def answer(self, jobs: Sequence[Job]) -> list[Answers | Failure]:
        """One answer a job; where one fails the others do not."""
        return self._loop.run_until_complete(self._answer_all(jobs))

    def find(self, text: str) -> Subjects | Failure:
        """What a text holds, by person.

        Raises:
            PiiBenchError: no text will get an answer.
        """
        try:
            return self._loop.run_until_complete(find(text, self._systems))
        except MaskingError as error:
            return Failure(str(error))

    async def _answer_all(self, jobs: Sequence[Job]) -> list[Answers | Failure]:
        if self.recipients == (THIS_MACHINE,):
            # Local models compute: at the same time each would only take longer.
            return [await self._answer(job) for job in jobs]
        return await asyncio.gather(*map(self._answer, jobs))

    async def _answer(self, job: Job) -> Answers | Failure:
        try:
            if job.query is None:
                subjects = await find(job.text, self._systems)
                return Answers(tuple(pair for subject in subjects for pair in subject), None)
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


# That which masks, and that of a project which is being prepared.
_MOST_WORKERS: Final = 2
_WORKERS: Final[dict[tuple[str, str | None], Worker]] = {}


def _own_worker(system: str, base_url: str | None) -> Worker:
    key = (system, base_url)
    own = _WORKERS.pop(key, None) or Worker(system, base_url)
    _WORKERS[key] = own  # as the last one used
    if len(_WORKERS) > _MOST_WORKERS:
        _WORKERS.pop(next(iter(_WORKERS))).close()
    return own


def recipients(system: str, base_url: str | None) -> tuple[str, ...]:
    """In a process of the pool: who is sent texts as they are by a system."""
    return _own_worker(system, base_url).recipients


def answer(system: str, base_url: str | None, jobs: Sequence[Job]) -> list[Answers | Failure]:
    """In a process of the pool: one answer a job."""
    return _own_worker(system, base_url).answer(jobs)


def subjects(system: str, text: str) -> Subjects | Failure:
    """In a process of the pool: what a text holds, by person, as a system says."""
    return _own_worker(system, None).find(text)


def close_all() -> None:
    """In a process of the pool: release what all its workers hold."""
    while _WORKERS:
        _WORKERS.popitem()[1].close()
