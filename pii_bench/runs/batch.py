"""Asking through a provider's batch API: half the price, an answer within a day.

What is paid for is neither lost nor bought twice: a job is in the run's jobs file before
it is submitted, and leaves it when its last result is stored. A run may end, or die, at any
moment between; the next one goes on from there.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pii_bench.errors import PiiBenchError, ProviderRefusedError
from pii_bench.models.base import CallError, Completion
from pii_bench.models.batch import RESULTS_GONE, Absence, UnknownJobError, custom_id
from pii_bench.runs.records import Failure, RunRecord, encode_record
from pii_bench.runs.store import Batch, BatchesFile, set_aside
from pii_bench.systems.prompted import PromptedSystem

if TYPE_CHECKING:
    from collections.abc import (
        AsyncIterator,
        Awaitable,
        Callable,
        Iterable,
        Iterator,
        Mapping,
        Sequence,
    )

    from pii_bench.datasets.sample import Sample
    from pii_bench.models.base import Outcome
    from pii_bench.models.batch import BatchService, BatchState
    from pii_bench.models.budget import Ledger
    from pii_bench.runs.run import Observer
    from pii_bench.runs.store import RunFiles, RunStore
    from pii_bench.systems.base import System

# Kinds of a failed submission after which there is certainly no job.
_NOT_SUBMITTED: Final = frozenset({"rate_limit", "bad_request"})
# A job may appear in the provider's list some time after its submission broke off.
_APPEARS_WITHIN: Final = 60.0
# Every provider keeps results longer. Before that, results that are not there may still come.
_KEPT_FOR: Final = 7 * 86400.0
_MOST_FAILURES: Final = 30
# Where no call of a run has been answered yet, the base URL may be wrong.
_PATIENCE: Final = 30.0
_LONGEST_RETRY_AFTER: Final = 600.0
# Seconds between the first two looks, and between any two: the pauses grow.
_SHORTEST_PAUSE: Final = 2.0
_LONGEST_PAUSE: Final = 60.0
# Providers end a job after 24 hours.
_GIVES_UP_AFTER: Final = 26 * 3600.0


@dataclass(frozen=True, slots=True)
class Polling:
    """How a run waits for its jobs.

    Attributes:
        wait: whether it does; where not, it leaves what still runs to a later run.
        sleep: how it waits.
        now: Unix time.
    """

    wait: bool = True
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    now: Callable[[], float] = time.time


def require_prompted(system: System) -> PromptedSystem:
    """The system, if it asks one model one question per sample.

    Raises:
        PiiBenchError: it does not.
    """
    if isinstance(system, PromptedSystem):
        return system
    card = system.card
    raise PiiBenchError(
        f"system {card.model!r} ({card.prompt}) cannot be run in batches: "
        "only a chat model that is asked once per sample can"
    )


async def run_batch(
    system: PromptedSystem,
    samples: Sequence[Sample],
    store: RunStore,
    *,
    files: RunFiles,
    requests: Mapping[str, str],
    service: BatchService,
    observer: Observer,
    polling: Polling | None = None,
) -> int:
    """Submit each sample that has neither a response nor a job; collect all jobs of the run.

    A request that fails inside of a job is recorded as such; the next run submits it again.
    A response to a request that has changed since goes to the superseded file.

    Args:
        system: who is asked.
        samples: about what.
        store: where responses are and go.
        files: of the same run.
        requests: sample id to request hash, for every sample of the dataset.
        service: of the system's model.
        observer: is told of each sample.
        polling: how to wait; None for the defaults.

    Returns:
        How many jobs still run; 0 where it waits.

    Raises:
        ProviderRefusedError: no request can succeed; what arrived before is saved.
        PiiBenchError: the provider does not answer any more, or does not know a job.
        ResultsError: a response or the list of jobs cannot be saved.
        InputFileError: the list of jobs is broken.
    """
    book = _Book(store, files, requests, {sample.id for sample in samples}, observer)
    run = _BatchRun(system, samples, BatchesFile(files), book, service, polling or Polling())
    observer.started(sum(sample.id in store.done for sample in samples), len(samples))
    running = await run.finish()
    store.sort()
    if book.refusal is not None:
        raise book.refusal
    return running


@dataclass(slots=True)
class _Book:
    """Enters what came back.

    Attributes:
        refusal: the first request that failed for a reason that all others share.
        failed: samples whose request brought nothing in this run.
    """

    store: RunStore
    files: RunFiles
    hashes: Mapping[str, str]
    shown: set[str]
    observer: Observer
    refusal: ProviderRefusedError | None = None
    failed: set[str] = field(default_factory=set)

    def enter(self, name: str, request: str, outcome: Outcome) -> None:
        """Save what became of a sample's request, unless an answer to it is there."""
        if isinstance(outcome, ProviderRefusedError):
            self.refusal = self.refusal or outcome
        record = RunRecord(name, request, _response(outcome))
        if self.hashes.get(name) != request:
            self._supersede(record)
        elif name not in self.store.done:
            self.store.append(record)
            failed = isinstance(record.response, Failure)
            if failed:
                self.failed.add(name)
            if name in self.shown:
                self.observer.advanced(failed=failed)

    def _supersede(self, record: RunRecord) -> None:
        if isinstance(record.response, Failure):
            return
        set_aside(self.files, [encode_record(record)])


class _BatchRun:
    def __init__(
        self,
        system: PromptedSystem,
        samples: Sequence[Sample],
        jobs: BatchesFile,
        book: _Book,
        service: BatchService,
        polling: Polling,
    ) -> None:
        self._system, self._samples = system, {sample.id: sample for sample in samples}
        self._jobs, self._book = jobs, book
        self._service, self._polling = service, polling
        self._states: dict[str, BatchState] = {}
        self._read: dict[str, set[str]] = {}
        self._reached = False

    async def finish(self) -> int:
        """Go round until nothing is left to do, or to wait for; how many jobs still run."""
        start = self._polling.now()
        pause, slept, failures = _SHORTEST_PAUSE, 0.0, 0
        while True:
            troubles = [error async for error in self._go_round()]
            failures = failures + 1 if troubles else 0
            if not self._jobs and not self._missing():
                return 0
            if not self._polling.wait and not troubles:
                return len(self._jobs)
            if failures == _MOST_FAILURES:
                raise self._abandoned(f"failed {failures} times in a row, last with {troubles[-1]}")
            if not self._reached and (waited := self._polling.now() - start) >= _PATIENCE:
                raise self._abandoned(f"was not reached in {waited:.0f} s")
            if slept >= _GIVES_UP_AFTER:
                raise self._abandoned(f"has not ended the jobs after {slept / 3600:.0f} hours")
            self._book.observer.waiting(
                finished=sum(state.finished for state in self._states.values()),
                total=sum(state.total for state in self._states.values()),
            )
            length = max([pause, *map(_asked_pause, troubles)])
            await self._polling.sleep(length)
            slept += length
            pause = min(pause * 1.5, _LONGEST_PAUSE)

    async def _go_round(self) -> AsyncIterator[CallError]:
        """Take every job one step on; what failed, to be tried again."""
        for job in self._jobs:
            if job.id is None and (error := await self._attempt(self._find(job))):
                yield error
        for job in self._new_jobs():
            if error := await self._attempt(self._submit(job)):
                yield error
        for job in self._jobs:
            if job.id is not None and (error := await self._attempt(self._look(job, job.id))):
                yield error

    async def _attempt(self, step: Awaitable[None]) -> CallError | None:
        try:
            await step
        except CallError as error:
            self._reached |= error.kind != "connection"
            return error
        self._reached = True
        return None

    async def _find(self, job: Batch) -> None:
        if (age := self._age(job)) < _APPEARS_WITHIN:
            await self._polling.sleep(_APPEARS_WITHIN - age)
        found = await self._service.find(job.tag, since=job.submitted, requests=len(job.requests))
        if isinstance(found, str):
            self._jobs.identify(job, found)
        elif found is Absence.SURE:
            self._jobs.drop(job)

    async def _submit(self, job: Batch) -> None:
        self._jobs.put(job)
        requests = [self._system.request(self._samples[name]) for name in job.requests]
        try:
            job_id = await self._service.submit(requests, job.tag)
        except ProviderRefusedError:
            self._jobs.drop(job)
            raise
        except CallError as error:
            if error.kind == "bad_request":
                self._fail(job, job.requests, error)
            if error.kind in _NOT_SUBMITTED:
                self._jobs.drop(job)
            raise
        self._jobs.identify(job, job_id)

    async def _look(self, job: Batch, job_id: str) -> None:
        try:
            state = await self._service.poll(job_id)
        except UnknownJobError as error:
            raise PiiBenchError(
                f"{error}, which is in {self._jobs.path}: was it submitted with another key? "
                "Without that file, its samples are submitted again"
            ) from None
        self._states[job.tag] = state
        if state.ended:
            await self._collect(job, job_id, state)

    async def _collect(self, job: Batch, job_id: str, state: BatchState) -> None:
        names = {custom_id(job.tag, number): name for number, name in enumerate(job.requests)}
        read = self._read.setdefault(job.tag, set())
        absent = state.absent
        try:
            async with aclosing(self._service.results(job_id)) as results:
                async for own_id, outcome in results:
                    if own_id in names and own_id not in read:
                        read.add(own_id)
                        name = names[own_id]
                        self._book.enter(name, job.requests[name], outcome)
        except CallError as error:
            if error.kind != RESULTS_GONE or self._age(job) < _KEPT_FOR:
                raise
            absent = error
        self._fail(job, [names[each] for each in names if each not in read], absent)
        self._jobs.drop(job)

    def _age(self, job: Batch) -> float:
        return max(self._polling.now() - job.submitted, 0.0)

    def _fail(
        self, job: Batch, names: Iterable[str], error: CallError | ProviderRefusedError
    ) -> None:
        for name in names:
            self._book.enter(name, job.requests[name], error)

    def _missing(self) -> list[str]:
        """The samples to submit: without a response, a failure of this run, or a job."""
        if self._book.refusal is not None:
            return []
        hashes = self._book.hashes
        submitted = {
            name
            for job in self._jobs
            for name, request in job.requests.items()
            if hashes.get(name) == request
        }
        settled = submitted | self._book.failed | self._book.store.done
        return [name for name in self._samples if name not in settled]

    def _new_jobs(self) -> Iterator[Batch]:
        """The missing samples in jobs that the provider takes, each as it is asked for."""
        limits, names, size = self._service.limits, list[str](), 0
        for name in self._missing():
            more = self._service.size(self._system.request(self._samples[name]))
            if names and (len(names) == limits.requests or size + more > limits.size):
                yield self._job(names)
                names, size = [], 0
            names.append(name)
            size += more
        if names:
            yield self._job(names)

    def _job(self, names: Sequence[str]) -> Batch:
        hashes = self._book.hashes
        requests = {name: hashes[name] for name in names}
        return Batch(secrets.token_hex(8), self._polling.now(), requests)

    def _abandoned(self, what: str) -> PiiBenchError:
        return PiiBenchError(
            f"model {self._system.model.name!r}: its batch API {what}; what came is saved, and "
            "the jobs go on: run again to collect the rest"
        )


def _asked_pause(error: CallError) -> float:
    return min(error.retry_after or 0.0, _LONGEST_RETRY_AFTER)


def _response(outcome: Outcome) -> Completion | Failure:
    match outcome:
        case Completion():
            return outcome
        case CallError():
            return Failure.of(outcome)
        case refusal:
            return Failure("provider_refused", str(refusal))


def afford(
    system: PromptedSystem,
    samples: Sequence[Sample],
    store: RunStore,
    files: RunFiles,
    ledger: Ledger | None,
) -> list[Sample]:
    """The samples that may be submitted; the others are recorded as skipped.

    A job cannot be stopped at a sum: each request that is not submitted yet is counted at the
    most that it may cost, and stays so for this run.

    Args:
        system: who would be asked.
        samples: about what.
        store: of the run, where those skipped are recorded.
        files: of the same run.
        ledger: that of the system; None where there is no cap to keep.

    Raises:
        ResultsError: a record cannot be saved.
        InputFileError: the list of jobs is broken.
    """
    if ledger is None:
        return list(samples)
    # A job without an id may turn out never to have reached the provider.
    submitted = {pair for job in BatchesFile(files) if job.id for pair in job.requests.items()}
    kept = []
    for sample in samples:
        request = system.request_hash(sample)
        if sample.id not in store.done and (sample.id, request) not in submitted:
            try:
                ledger.reserve(system.request(sample), batched=True)
            except CallError as error:
                store.append(RunRecord(sample.id, request, Failure.of(error)))
                continue
        kept.append(sample)
    return kept
