"""Texts wait here for a process of the pool; those that wait together go in one batch.

A process of the pool loads a system once, and answers batches of texts.
"""

from __future__ import annotations

import asyncio
import heapq
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from itertools import count
from multiprocessing import get_context
from typing import TYPE_CHECKING, Final

from pii_bench.errors import PiiBenchError
from pii_bench.models.catalog import ModelOptions
from pii_bench.runs.mask_text import Answers, MaskingError, ask, find, masking_systems
from pii_bench.systems.base import THIS_MACHINE
from pii_bench.systems.catalog import SystemOptions, build_systems
from pii_bench.systems.prompted import pieces

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from pii_bench.runs.mask_text import OnFailure
    from pii_bench.systems.predictions import Subjects
    from pii_bench.web.settings import Settings

LARGEST_BATCH: Final = 4
MOST_WAITING: Final = 2000
PIECE: Final = 3000
"""Longer texts are read in pieces of this many characters, so that others need not wait."""

# A system may remember the texts it has seen; a new process remembers none.
_BATCHES_PER_PROCESS: Final = 1000
_DIED: Final = "a process of the pool has died: try again"


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


class BusyError(PiiBenchError):
    """Too many texts wait, or the pool broke: try again later."""


@dataclass(order=True, slots=True)
class _Waiting:
    # Pieces of long texts go behind whole short ones.
    is_piece: bool
    number: int
    job: Job = field(compare=False, repr=False)
    answer: asyncio.Future[Answers | Failure] = field(compare=False, repr=False)


class Masker:
    """Asks a system about texts, in other processes.

    The processes start with the first text, or with `start`. `answers` and `stream` are for
    one event loop.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._system = (settings.system, settings.base_url)
        self._pool: Executor | None = None
        self._waiting: list[_Waiting] = []
        self._numbers = count()
        self._running: set[asyncio.Future[list[Answers | Failure]]] = set()
        self._recipients: tuple[str, ...] | None = None
        self._suggesting = asyncio.Lock()
        # One batch waits within the pool, so that no process waits for this loop.
        self._most_running = settings.workers + 1 if settings.workers else 1

    @property
    def waiting(self) -> int:
        """Texts that no process has taken yet."""
        return len(self._waiting)

    def start(self) -> tuple[str, ...]:
        """Start the pool, unless it runs, and tell who is sent texts as they are.

        Raises:
            PiiBenchError: no such system, or it cannot mask.
        """
        if self._recipients is None:
            future = self._executor().submit(_recipients, *self._system)
            self._recipients = future.result()
        return self._recipients

    def pieces_of(self, text: str) -> int:
        """In how many pieces a text is read."""
        return len(pieces(text, PIECE))

    async def subjects(self, system: str, text: str) -> Subjects | Failure:
        """What another system finds in a text, by person; one text at a time.

        Raises:
            PiiBenchError: no text will get an answer, or the process broke.
        """
        async with self._suggesting:
            pool = self._executor()
            try:
                return await asyncio.wrap_future(pool.submit(_subjects, system, text))
            except BrokenProcessPool:
                self._renew(pool)
                raise BusyError(_DIED) from None

    async def answers(
        self, text: str, query: str | None, on_failure: OnFailure = "refuse"
    ) -> Answers:
        """What a text holds and what the query needs; a long one is read in pieces.

        Without a query only what it holds.

        Raises:
            MaskingError: no answer on which the text can be masked.
            BusyError: too many wait, or the process broke.
        """
        found = [answers async for _, answers in self.stream(text, query, on_failure)]
        return joined(found)

    async def stream(
        self, text: str, query: str | None, on_failure: OnFailure = "refuse"
    ) -> AsyncIterator[tuple[str, Answers]]:
        """Each piece of a text with its answer, in order; see `answers`."""
        parts = pieces(text, PIECE)
        if self.waiting + len(parts) > MOST_WAITING:
            raise BusyError("too many texts wait: try again in a minute")
        futures = [
            self._add(Job(part, query, on_failure), is_piece=len(parts) > 1) for part in parts
        ]
        try:
            for part, future in zip(parts, futures, strict=True):
                answer = await future
                if isinstance(answer, Failure):
                    raise MaskingError(answer.reason)
                yield part, answer
        finally:
            for future in futures:
                future.cancel()

    def close(self) -> None:
        """End the processes."""
        if isinstance(self._pool, ThreadPoolExecutor):
            self._pool.submit(_close_all).result()
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
        self._pool = None

    def _executor(self) -> Executor:
        if self._pool is None:
            processes = self._settings.workers
            self._pool = (
                ProcessPoolExecutor(
                    processes,
                    # A fork would copy locks that threads of the server hold.
                    mp_context=get_context("spawn"),
                    max_tasks_per_child=_BATCHES_PER_PROCESS,
                )
                if processes
                else ThreadPoolExecutor(1)
            )
        return self._pool

    def _add(self, job: Job, *, is_piece: bool) -> asyncio.Future[Answers | Failure]:
        answer = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, _Waiting(is_piece, next(self._numbers), job, answer))
        # Those that come in this turn of the loop go together.
        asyncio.get_running_loop().call_soon(self._dispatch)
        return answer

    def _dispatch(self) -> None:
        while self._waiting and len(self._running) < self._most_running:
            # Ever smaller towards the end, so that no process idles while another has many.
            share = -(-len(self._waiting) // (2 * max(1, self._settings.workers)))
            size = min(LARGEST_BATCH, share)
            if self._waiting[0].is_piece:
                # Each is told as soon as it is read, and others come in between.
                size = 1
            batch = [heapq.heappop(self._waiting) for _ in range(size)]
            batch = [each for each in batch if not each.answer.cancelled()]
            if batch:
                self._send(batch)

    def _send(self, batch: Sequence[_Waiting]) -> None:
        jobs = [each.job for each in batch]
        pool = self._executor()
        try:
            future = asyncio.wrap_future(pool.submit(_answer, *self._system, jobs))
        except BrokenProcessPool:
            self._renew(pool)
            _fail(batch, BusyError(_DIED))
            return
        self._running.add(future)

        def done(finished: asyncio.Future[list[Answers | Failure]]) -> None:
            self._running.discard(finished)
            if finished.cancelled():
                _fail(batch, BusyError("the server is stopping"))
            elif isinstance(error := finished.exception(), BrokenProcessPool):
                self._renew(pool)
                _fail(batch, BusyError(_DIED))
            elif error is not None:
                _fail(batch, error)
            else:
                for each, answer in zip(batch, finished.result(), strict=True):
                    if not each.answer.done():
                        each.answer.set_result(answer)
            self._dispatch()

        future.add_done_callback(done)

    def _renew(self, broken: Executor) -> None:
        broken.shutdown(wait=False)
        if self._pool is broken:
            self._pool = None


def joined(parts: Sequence[Answers]) -> Answers:
    """The answers to the pieces of a text as one; a need that is unknown in one is unknown."""
    entities = dict.fromkeys(pair for part in parts for pair in part.entities)
    if any(part.needed is None for part in parts):
        return Answers(tuple(entities), None)
    needed = dict.fromkeys(text for part in parts for text in part.needed or ())
    return Answers(tuple(entities), tuple(needed))


def _fail(batch: Sequence[_Waiting], error: BaseException) -> None:
    for each in batch:
        if not each.answer.done():
            each.answer.set_exception(error)


class _Worker:
    """A system with an event loop of its own, in which its clients live.

    Raises:
        PiiBenchError: no such system.
    """

    def __init__(self, system: str, base_url: str | None) -> None:
        options = SystemOptions(model=ModelOptions(base_url=base_url))
        self._systems = build_systems(system, options)
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

    def close(self) -> None:
        """Release what it holds."""
        for system in self._systems:
            self._loop.run_until_complete(system.close())
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()


# That which masks, and that of a project which is being prepared.
_MOST_WORKERS: Final = 2
_WORKERS: Final[dict[tuple[str, str | None], _Worker]] = {}


def _own_worker(system: str, base_url: str | None) -> _Worker:
    key = (system, base_url)
    own = _WORKERS.pop(key, None) or _Worker(system, base_url)
    _WORKERS[key] = own  # as the last one used
    if len(_WORKERS) > _MOST_WORKERS:
        _WORKERS.pop(next(iter(_WORKERS))).close()
    return own


def _recipients(system: str, base_url: str | None) -> tuple[str, ...]:
    """In a process of the pool: who is sent texts as they are by a system."""
    return _own_worker(system, base_url).recipients


def _answer(system: str, base_url: str | None, jobs: Sequence[Job]) -> list[Answers | Failure]:
    """In a process of the pool: one answer a job."""
    return _own_worker(system, base_url).answer(jobs)


def _subjects(system: str, text: str) -> Subjects | Failure:
    """In a process of the pool: what a text holds, by person, as a system says."""
    return _own_worker(system, None).find(text)


def _close_all() -> None:
    """In a process of the pool: release what all its workers hold."""
    while _WORKERS:
        _WORKERS.popitem()[1].close()
