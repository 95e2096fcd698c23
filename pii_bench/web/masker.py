"""A queue of texts and the pool of processes that mask them.

A process of the pool loads a system once and answers batches of texts.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from itertools import count
from multiprocessing import get_context
from typing import TYPE_CHECKING, Final, TypeVar

from pii_bench.errors import PiiBenchError
from pii_bench.models.catalog import ModelOptions
from pii_bench.runs.mask_text import (
    Answers,
    MaskingError,
    ask,
    check_query,
    find,
    masking_systems,
)
from pii_bench.systems.base import THIS_MACHINE
from pii_bench.systems.catalog import SystemOptions, build_systems
from pii_bench.systems.prompted import pieces

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from pii_bench.runs.mask_text import OnFailure
    from pii_bench.systems.base import System
    from pii_bench.systems.predictions import Subjects
    from pii_bench.web.settings import Settings

_T = TypeVar("_T")

LARGEST_BATCH: Final = 4
MOST_WAITING: Final = 2000
PIECE: Final = 3000
"""Longer texts are read in pieces of this many characters, so that others wait less."""

# A system may remember the texts it has seen; a new process remembers none.
_BATCHES_PER_PROCESS: Final = 1000


@dataclass(frozen=True, slots=True)
class Job:
    """A text and its query; without a query its entities alone are found."""

    text: str = field(repr=False)
    query: str | None = field(repr=False)
    on_failure: OnFailure = "refuse"


@dataclass(frozen=True, slots=True)
class Failure:
    """The reason why a text got no answer; it never quotes the text."""

    reason: str


class BusyError(PiiBenchError):
    """The server cannot take a text now: too many wait, or the pool broke."""


@dataclass(order=True, slots=True)
class _Waiting:
    # Compared first: pieces of long texts go behind whole texts.
    is_piece: bool
    number: int
    job: Job = field(compare=False, repr=False)
    answer: asyncio.Future[Answers | Failure] = field(compare=False, repr=False)


class Masker:
    """Runs a system on texts in other processes.

    The processes start with the first text or with `start`. `answers` and `stream` must be called
    from one event loop.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._system = (settings.system, settings.base_url)
        self._pool: Executor | None = None
        self._queue: asyncio.PriorityQueue[_Waiting] = asyncio.PriorityQueue()
        self._numbers = count()
        self._senders: list[asyncio.Task[None]] = []
        self._recipients: tuple[str, ...] | None = None
        self._suggesting = asyncio.Lock()

    @property
    def waiting(self) -> int:
        """The number of texts that no process has taken yet."""
        return self._queue.qsize()

    def start(self) -> tuple[str, ...]:
        """Start the pool, unless it runs, and return the recipients of unmasked texts.

        Raises:
            PiiBenchError: the system does not exist or cannot mask.
        """
        if self._recipients is None:
            future = self._executor().submit(_recipients, *self._system)
            try:
                self._recipients = future.result()
            except PiiBenchError:
                self.close()
                raise
        return self._recipients

    async def subjects(self, system: str, text: str) -> Subjects | Failure:
        """Return the entities that another system finds in a text, by person; one call at a time.

        Raises:
            PiiBenchError: the system cannot answer any text, or the process broke.
        """
        async with self._suggesting:
            return await self._call(_subjects, system, text)

    async def answers(
        self, text: str, query: str | None, on_failure: OnFailure = "refuse"
    ) -> Answers:
        """Return the entities of a text, and with a query those that it needs.

        Raises:
            PiiBenchError: the query is blank.
            MaskingError: there is no answer by which the text can be masked.
            BusyError: too many texts wait, or the process broke.
        """
        return joined([answers async for _, answers in self.stream(text, query, on_failure)])

    async def stream(
        self, text: str, query: str | None, on_failure: OnFailure = "refuse"
    ) -> AsyncIterator[tuple[str, Answers]]:
        """Yield each piece of a text with its answer, in order; see `answers`."""
        if query is not None:
            check_query(query)
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
        if not self._senders:
            # One more than processes, so that no process waits for this loop.
            senders = self._settings.workers + 1
            self._senders = [asyncio.create_task(self._send_batches()) for _ in range(senders)]
        answer = asyncio.get_running_loop().create_future()
        self._queue.put_nowait(_Waiting(is_piece, next(self._numbers), job, answer))
        return answer

    async def _send_batches(self) -> None:
        while True:
            batch = await self._next_batch()
            if not batch:
                continue
            call = self._call(_answer, *self._system, [waiting.job for waiting in batch])
            # Any error is that of these texts: the others go on.
            (found,) = await asyncio.gather(call, return_exceptions=True)
            if isinstance(found, asyncio.CancelledError):
                found = BusyError("the server is stopping")
            answers = [found] * len(batch) if isinstance(found, BaseException) else found
            for waiting, answer in zip(batch, answers, strict=True):
                if waiting.answer.cancelled():
                    continue
                if isinstance(answer, BaseException):
                    waiting.answer.set_exception(answer)
                else:
                    waiting.answer.set_result(answer)

    async def _next_batch(self) -> list[_Waiting]:
        """Wait for texts, and take as many as a process is to answer at the same time."""
        batch = [await self._queue.get()]
        # Local models share the processor. Each piece is reported when it is read.
        if self._recipients != (THIS_MACHINE,) and not batch[0].is_piece:
            more = min(LARGEST_BATCH - 1, self.waiting)
            batch += [self._queue.get_nowait() for _ in range(more)]
        return [waiting for waiting in batch if not waiting.answer.cancelled()]

    async def _call(self, function: Callable[..., _T], *arguments: object) -> _T:
        """Call a function in a process."""
        pool = self._executor()
        try:
            return await asyncio.wrap_future(pool.submit(function, *arguments))
        except BrokenProcessPool:
            pool.shutdown(wait=False)
            if self._pool is pool:
                self._pool = None
            raise BusyError("a masking process has died: try again") from None


def joined(parts: Sequence[Answers]) -> Answers:
    """Join the answers to the pieces of a text; `needed` is None if it is in any of them."""
    entities = dict.fromkeys(pair for part in parts for pair in part.entities)
    if any(part.needed is None for part in parts):
        return Answers(tuple(entities), None)
    needed = dict.fromkeys(text for part in parts for text in part.needed or ())
    return Answers(tuple(entities), tuple(needed))


@dataclass(frozen=True, slots=True)
class _Worker:
    """A system in a process of the pool, with the event loop of its clients."""

    systems: Sequence[System]
    # Only its loop is used: `asyncio.Runner.run` delays Ctrl-C to the end of a batch.
    runner: asyncio.Runner

    def close(self) -> None:
        """Close the systems and the event loop."""
        with self.runner:
            for system in self.systems:
                self.runner.get_loop().run_until_complete(system.close())


# The system that masks, and the one that prepares the suggestions of a project.
_MOST_WORKERS: Final = 2
_WORKERS: Final[dict[tuple[str, str | None], _Worker]] = {}


# The functions below run in a process of the pool.


def _worker(system: str, base_url: str | None) -> _Worker:
    worker = _WORKERS.pop((system, base_url), None)
    if worker is None:
        options = SystemOptions(model=ModelOptions(base_url=base_url))
        worker = _Worker(build_systems(system, options), asyncio.Runner())
    _WORKERS[system, base_url] = worker  # last, as the one used most recently
    if len(_WORKERS) > _MOST_WORKERS:
        _WORKERS.pop(next(iter(_WORKERS))).close()
    return worker


def _close_all() -> None:
    while _WORKERS:
        _WORKERS.popitem()[1].close()


def _recipients(system: str, base_url: str | None) -> tuple[str, ...]:
    systems = masking_systems(_worker(system, base_url).systems)
    return tuple(sorted({each.card.unmasked_text_to for each in systems}))


def _subjects(system: str, text: str) -> Subjects | Failure:
    worker = _worker(system, None)
    try:
        return worker.runner.get_loop().run_until_complete(find(text, worker.systems))
    except MaskingError as error:
        return Failure(str(error))


def _answer(system: str, base_url: str | None, jobs: Sequence[Job]) -> list[Answers | Failure]:
    """Return one answer for each job; a failure affects its own job alone."""
    worker = _worker(system, base_url)

    async def answers() -> list[Answers | Failure]:
        return await asyncio.gather(*(_answer_one(worker.systems, job) for job in jobs))

    return worker.runner.get_loop().run_until_complete(answers())


async def _answer_one(systems: Sequence[System], job: Job) -> Answers | Failure:
    try:
        if job.query is None:
            subjects = await find(job.text, systems)
            return Answers(tuple(pair for subject in subjects for pair in subject), None)
        return await ask(job.text, job.query, systems, on_failure=job.on_failure)
    except PiiBenchError as error:
        return Failure(str(error))
