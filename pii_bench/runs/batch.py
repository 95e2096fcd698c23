"""Running a system through a provider's batch API: half the price, an answer within a day.

No result is lost or paid for twice: a batch is written to the list of batches before it is
submitted, and removed when its last result is stored. The process may be killed at any moment; the
next run continues from the list.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pii_bench.errors import PiiBenchError, ProviderRefusedError, ProviderUnavailableError
from pii_bench.models.base import CallError, Completion
from pii_bench.models.batch import RESULTS_GONE, Absence, UnknownJobError, custom_id
from pii_bench.runs.records import Failure, RunRecord, encode_record
from pii_bench.runs.store import Batch, BatchesFile, supersede
from pii_bench.systems.prompted import PromptedSystem

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence

    from pii_bench.datasets.sample import Sample
    from pii_bench.models.base import Outcome
    from pii_bench.models.batch import BatchService, BatchState
    from pii_bench.models.budget import Ledger
    from pii_bench.runs.progress import Progress
    from pii_bench.runs.store import RunStore
    from pii_bench.systems.base import System

# Errors of a submission after which the batch certainly does not exist.
_NOT_SUBMITTED: Final = frozenset({"rate_limit", "bad_request"})
# Seconds until an interrupted submission shows up in the provider's list of batches.
_APPEARS_WITHIN: Final = 60.0
# All providers keep results longer than this; missing results of a younger batch may still come.
_KEPT_FOR: Final = 7 * 86400.0
_MOST_FAILURES: Final = 30
# Seconds to wait for the first answer at all: the base URL may be wrong.
_PATIENCE: Final = 30.0
_LONGEST_RETRY_AFTER: Final = 600.0
# Seconds between polls, growing from the first to the second value.
_SHORTEST_PAUSE: Final = 2.0
_LONGEST_PAUSE: Final = 60.0
# Providers end a batch after 24 hours.
_GIVES_UP_AFTER: Final = 26 * 3600.0


@dataclass(frozen=True, slots=True)
class Polling:
    """How to wait for batches.

    Attributes:
        wait: False to return while batches still run.
        now: returns Unix time.
    """

    wait: bool = True
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    now: Callable[[], float] = time.time


def require_prompted(system: System) -> PromptedSystem:
    """Return the system if it makes one chat model call per sample.

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
    service: BatchService,
    progress: Progress,
    polling: Polling,
) -> int:
    """Submit samples that have neither a response nor a batch, and collect all batches of a run.

    A request that fails inside a batch is recorded as a failure, and the next run submits it again.
    A response to a request that has changed since goes to the superseded file.

    Returns:
        The number of batches that still run; 0 after waiting.

    Raises:
        ProviderRefusedError: no request can succeed; earlier responses are saved.
        ProviderUnavailableError: the provider stops answering.
        PiiBenchError: the provider does not know a batch.
        ResultsError: a response or the list of batches cannot be saved.
        InputFileError: the list of batches cannot be read.
    """
    by_id = {sample.id: sample for sample in samples}
    batches = BatchesFile(store.files)
    run = _BatchRun(system, by_id, store, batches, service, progress, polling)
    progress.started(sum(sample.id in store.done for sample in samples), len(samples))
    running = await run.finish()
    store.sort()
    if run.refusal is not None:
        raise run.refusal
    return running


@dataclass(eq=False)
class _BatchRun:
    """The batches of one run.

    Attributes:
        samples: by id.
        refusal: the first outcome with which the provider refuses every request.
        failed: ids of the samples whose request failed in this run.
        states: tag of a batch to its last state.
        read: tag of a batch to the ids of the results that are saved.
        reached: whether the provider has answered at all.
    """

    system: PromptedSystem
    samples: Mapping[str, Sample]
    store: RunStore
    batches: BatchesFile
    service: BatchService
    progress: Progress
    polling: Polling
    refusal: ProviderRefusedError | None = None
    failed: set[str] = field(default_factory=set)
    states: dict[str, BatchState] = field(default_factory=dict)
    read: dict[str, set[str]] = field(default_factory=dict)
    reached: bool = False

    async def finish(self) -> int:
        """Poll until all batches are collected; return the number of batches that still run."""
        start = self.polling.now()
        pause, slept, failures = _SHORTEST_PAUSE, 0.0, 0
        while True:
            errors = await self._advance_all()
            failures = failures + 1 if errors else 0
            if not self.batches and not self._missing():
                return 0
            if not self.polling.wait and not errors:
                return len(self.batches)
            if failures == _MOST_FAILURES:
                raise self._abandoned(f"failed {failures} times in a row, last with {errors[-1]}")
            waited = self.polling.now() - start
            if not self.reached and waited >= _PATIENCE:
                raise self._abandoned(f"was not reached in {waited:.0f} s")
            if slept >= _GIVES_UP_AFTER:
                raise self._abandoned(f"has not ended the batches after {slept / 3600:.0f} hours")
            self.progress.waiting(
                finished=sum(state.finished for state in self.states.values()),
                total=sum(state.total for state in self.states.values()),
            )
            asked = max((error.retry_after or 0.0 for error in errors), default=0.0)
            length = max(pause, min(asked, _LONGEST_RETRY_AFTER))
            await self.polling.sleep(length)
            slept += length
            pause = min(pause * 1.5, _LONGEST_PAUSE)

    async def _advance_all(self) -> list[CallError]:
        """Advance every batch by one step, and return the errors; the steps are tried again."""
        outcomes = [
            await self._attempt(self._find(batch)) for batch in self.batches if batch.id is None
        ]
        outcomes += [await self._attempt(self._submit(batch)) for batch in self._new_batches()]
        outcomes += [
            await self._attempt(self._poll(batch, batch.id))
            for batch in self.batches
            if batch.id is not None
        ]
        return [error for error in outcomes if error is not None]

    async def _attempt(self, step: Awaitable[None]) -> CallError | None:
        try:
            await step
        except CallError as error:
            self.reached |= error.kind != "connection"
            return error
        self.reached = True
        return None

    async def _find(self, batch: Batch) -> None:
        """Find out whether an interrupted submission reached the provider."""
        if (age := self._age(batch)) < _APPEARS_WITHIN:
            await self.polling.sleep(_APPEARS_WITHIN - age)
        found = await self.service.find(
            batch.tag, since=batch.submitted, requests=len(batch.requests)
        )
        if isinstance(found, str):
            self.batches.set_id(batch, found)
        elif found is Absence.SURE:
            self.batches.drop(batch)

    async def _submit(self, batch: Batch) -> None:
        self.batches.put(batch)
        requests = [self.system.request(self.samples[name]) for name in batch.requests]
        try:
            batch_id = await self.service.submit(requests, batch.tag)
        except ProviderRefusedError:
            self.batches.drop(batch)
            raise
        except CallError as error:
            if error.kind == "bad_request":
                for name in batch.requests:
                    self._record(batch, name, error)
            if error.unsent or error.kind in _NOT_SUBMITTED:
                self.batches.drop(batch)
            raise
        self.batches.set_id(batch, batch_id)

    async def _poll(self, batch: Batch, batch_id: str) -> None:
        try:
            state = await self.service.poll(batch_id)
        except UnknownJobError as error:
            raise PiiBenchError(
                f"{error}, which is in {self.batches.path}: was it submitted with another key? "
                "Without that file, its samples are submitted again"
            ) from None
        self.states[batch.tag] = state
        if state.ended:
            await self._collect(batch, batch_id, state)

    async def _collect(self, batch: Batch, batch_id: str, state: BatchState) -> None:
        names = {custom_id(batch.tag, number): name for number, name in enumerate(batch.requests)}
        read = self.read.setdefault(batch.tag, set())
        absent = state.absent
        try:
            async with aclosing(self.service.results(batch_id)) as results:
                async for result_id, outcome in results:
                    if result_id in names and result_id not in read:
                        read.add(result_id)
                        self._record(batch, names[result_id], outcome)
        except CallError as error:
            if error.kind != RESULTS_GONE or self._age(batch) < _KEPT_FOR:
                raise
            absent = error
        for result_id, name in names.items():
            if result_id not in read:
                self._record(batch, name, absent)
        self.batches.drop(batch)

    def _age(self, batch: Batch) -> float:
        return max(self.polling.now() - batch.submitted, 0.0)

    def _record(self, batch: Batch, name: str, outcome: Outcome) -> None:
        """Save the outcome of a sample's request, unless the sample has a response."""
        response: Completion | Failure
        match outcome:
            case Completion():
                response = outcome
            case CallError():
                response = Failure.of(outcome)
            case ProviderRefusedError():
                response = Failure("provider_refused", str(outcome))
                self.refusal = self.refusal or outcome
        record = RunRecord(name, batch.requests[name], response)
        failed = isinstance(response, Failure)
        if self.store.requests.get(name) != record.request:
            if not failed:
                supersede(self.store.files, [encode_record(record)])
        elif name not in self.store.done:
            self.store.append(record)
            if failed:
                self.failed.add(name)
            if name in self.samples:
                self.progress.advanced(failed=failed)

    def _missing(self) -> list[str]:
        """Return the samples to submit: no response, no failure in this run, not in a batch."""
        if self.refusal is not None:
            return []
        submitted = {
            name
            for batch in self.batches
            for name, request in batch.requests.items()
            if self.store.requests.get(name) == request
        }
        finished = submitted | self.failed | self.store.done
        return [name for name in self.samples if name not in finished]

    def _new_batches(self) -> Iterator[Batch]:
        """Yield batches of the missing samples, within the limits of the provider."""
        limits = self.service.limits
        names: list[str] = []
        size = 0
        for name in self._missing():
            request_size = self.service.size(self.system.request(self.samples[name]))
            if names and (len(names) == limits.requests or size + request_size > limits.size):
                yield self._batch(names)
                names, size = [], 0
            names.append(name)
            size += request_size
        if names:
            yield self._batch(names)

    def _batch(self, names: Sequence[str]) -> Batch:
        requests = {name: self.store.requests[name] for name in names}
        return Batch(secrets.token_hex(8), self.polling.now(), requests)

    def _abandoned(self, what: str) -> ProviderUnavailableError:
        if any(batch.id for batch in self.batches):
            rest = "the batches go on: run again to collect the rest"
        elif self.batches:
            rest = "a batch may have been submitted: run again to find out"
        else:
            rest = "no batch is left to collect: run again to submit the rest"
        return ProviderUnavailableError(
            f"model {self.system.model.name!r}: its batch API {what}; results so far are saved, "
            f"and {rest}"
        )


def afford(
    system: PromptedSystem,
    samples: Sequence[Sample],
    store: RunStore,
    ledger: Ledger | None,
) -> list[Sample]:
    """Return the samples within the budget; record the others as skipped.

    A batch cannot be stopped at a cost limit, so each request that is not submitted yet reserves
    its maximum cost for the whole run.

    Raises:
        ResultsError: a record cannot be saved.
        InputFileError: the list of batches cannot be read.
    """
    if ledger is None:
        return list(samples)
    # A batch without an id may never have reached the provider.
    submitted = {
        pair for batch in BatchesFile(store.files) if batch.id for pair in batch.requests.items()
    }
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
