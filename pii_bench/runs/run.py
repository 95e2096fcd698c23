"""Asking a system about every sample of a dataset that has no answer yet."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Protocol

from pii_bench.errors import PiiBenchError
from pii_bench.models.base import CallError
from pii_bench.runs.records import Failure, RunRecord
from pii_bench.systems.catalog import SystemOptions, build_systems

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pii_bench.datasets.sample import Sample
    from pii_bench.models.budget import Ledger
    from pii_bench.runs.store import RunStore
    from pii_bench.systems.base import Response
    from pii_bench.tasks import Task

    MapSamples = Callable[[Sequence[Sample]], Iterator[Response | Failure]]


class Respondent(Protocol):
    """Answers a sample: a system, or whatever else is asked through a store."""

    async def respond(self, sample: Sample) -> Response:
        """See `System.respond`."""
        ...


class Observer(Protocol):
    """Is told how a run goes."""

    def started(self, done: int, total: int) -> None:
        """A run begins; `done` samples of `total` were answered before."""
        ...

    def advanced(self, *, failed: bool) -> None:
        """One more sample was answered, or its call failed."""
        ...

    def waiting(self, *, finished: int, total: int) -> None:
        """The provider has finished so many requests of the batches that still run."""
        ...


class Progress(Observer, Protocol):
    """Is told how several runs go, one after another."""

    def label(self, text: str, ledger: Ledger | None = None) -> None:
        """The run that starts next, and who keeps account of its calls."""
        ...

    def note(self, what: str) -> None:
        """Something that the user should know of the run."""
        ...


async def run_system(
    system: Respondent,
    samples: Sequence[Sample],
    store: RunStore,
    *,
    concurrency: int,
    observer: Observer,
) -> None:
    """Ask about each sample that the store has no response to; save each as it arrives.

    A call that fails is recorded as such and the run goes on; it is asked again by the
    next run.

    Args:
        system: who is asked.
        samples: about what; the store knows the request of each.
        store: where responses are and go.
        concurrency: how many samples are asked about at a time, at least 1.
        observer: is told of each sample.

    Raises:
        ProviderRefusedError: no call can succeed; what arrived before is saved.
        ResultsError: a response cannot be saved.
    """
    waiting = iter([sample for sample in samples if sample.id not in store.done])
    observer.started(sum(sample.id in store.done for sample in samples), len(samples))
    try:
        async with asyncio.TaskGroup() as workers:
            for _ in range(concurrency):
                workers.create_task(_work(system, waiting, store, observer))
    except ExceptionGroup as group:
        # Every worker meets the same refusal or the same full disk; one is enough to tell.
        ours = group.subgroup(PiiBenchError)
        raise (ours.exceptions[0] if ours else group) from None
    store.sort()


def run_mapped(
    map_samples: MapSamples, samples: Sequence[Sample], store: RunStore, observer: Observer
) -> None:
    """The same as `run_system`, where something else asks the system (`respond_on_ray`).

    Args:
        map_samples: makes responses of samples, in their order.
        samples: about what; the store knows the request of each.
        store: where responses are and go.
        observer: is told of each sample.

    Raises:
        ResultsError: a response cannot be saved.
    """
    waiting = [sample for sample in samples if sample.id not in store.done]
    observer.started(len(samples) - len(waiting), len(samples))
    for sample, response in zip(waiting, map_samples(waiting), strict=True):
        store.append(RunRecord(sample.id, store.requests[sample.id], response))
        observer.advanced(failed=isinstance(response, Failure))
    store.sort()


def respond_on_ray(
    name: str, options: SystemOptions, workers: int, task: Task, samples: Sequence[Sample]
) -> Iterator[Response | Failure]:
    """Ask a system in the processes of a Ray cluster, each of which builds it for itself.

    Args:
        name: of the system.
        options: of the system.
        workers: how many processes.
        task: what is asked.
        samples: about what.

    Returns:
        A response to each sample, in their order.

    Raises:
        MissingExtraError: Ray is not installed.
    """
    from pii_bench.runs.on_ray import map_on_ray

    return map_on_ray(partial(_Responder, name, options, task), samples, workers)


class _Responder:
    def __init__(self, name: str, options: SystemOptions, task: Task) -> None:
        systems = build_systems(name, options)
        self._system = next(system for system in systems if system.card.task is task)
        self._runner = asyncio.Runner()

    def __call__(self, sample: Sample) -> Response | Failure:
        try:
            return self._runner.run(self._system.respond(sample))
        except CallError as error:
            return Failure.of(error)


async def _work(
    system: Respondent, waiting: Iterator[Sample], store: RunStore, observer: Observer
) -> None:
    for sample in waiting:
        try:
            response = await system.respond(sample)
        except CallError as error:
            store.append(RunRecord(sample.id, store.requests[sample.id], Failure.of(error)))
            observer.advanced(failed=True)
        else:
            store.append(RunRecord(sample.id, store.requests[sample.id], response))
            observer.advanced(failed=False)


class Silent:
    """Is told, and shows nothing (`Progress`)."""

    def label(self, text: str, ledger: Ledger | None = None) -> None:
        """Nothing."""

    def note(self, what: str) -> None:
        """Nothing."""

    def waiting(self, *, finished: int, total: int) -> None:
        """Nothing."""

    def started(self, done: int, total: int) -> None:
        """Nothing."""

    def advanced(self, *, failed: bool) -> None:
        """Nothing."""
