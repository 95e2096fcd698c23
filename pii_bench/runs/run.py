"""Running a system on every sample of a dataset that has no response yet."""

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
    from pii_bench.runs.progress import Progress
    from pii_bench.runs.store import RunStore
    from pii_bench.systems.base import Response
    from pii_bench.tasks import Task

    MapSamples = Callable[[Sequence[Sample]], Iterator[Response | Failure]]


class Respondent(Protocol):
    """Anything that answers a sample: a system, or the writer of the dataset texts."""

    async def respond(self, sample: Sample) -> Response:
        """See `System.respond`."""


async def run_system(
    system: Respondent,
    samples: Sequence[Sample],
    store: RunStore,
    *,
    concurrency: int,
    progress: Progress,
) -> None:
    """Run a system on the samples that the store has no response to; save each response at once.

    A failed call is recorded as a failure, and the next run tries it again.

    The store must have the request hash of each sample.

    Raises:
        ProviderRefusedError: no call can succeed; earlier responses are saved.
        ResultsError: a response cannot be saved.
    """
    waiting = iter([sample for sample in samples if sample.id not in store.done])
    progress.started(sum(sample.id in store.done for sample in samples), len(samples))
    try:
        async with asyncio.TaskGroup() as workers:
            for _ in range(concurrency):
                workers.create_task(_work(system, waiting, store, progress))
    except ExceptionGroup as group:
        # All workers hit the same refusal or the same full disk; report it once.
        ours = group.subgroup(PiiBenchError)
        raise (ours.exceptions[0] if ours else group) from None
    store.sort()


def run_mapped(
    map_samples: MapSamples, samples: Sequence[Sample], store: RunStore, progress: Progress
) -> None:
    """Like `run_system`, with a function that maps samples to responses (`respond_on_ray`).

    `map_samples` yields the responses in the order of the samples.

    Raises:
        ResultsError: a response cannot be saved.
    """
    waiting = [sample for sample in samples if sample.id not in store.done]
    progress.started(len(samples) - len(waiting), len(samples))
    for sample, response in zip(waiting, map_samples(waiting), strict=True):
        _save(sample, response, store, progress)
    store.sort()


def respond_on_ray(
    name: str, options: SystemOptions, workers: int, task: Task, samples: Sequence[Sample]
) -> Iterator[Response | Failure]:
    """Run a system in the worker processes of a Ray cluster; each worker builds its own copy.

    The responses are in the order of the samples.

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
        return self._runner.run(_respond(self._system, sample))


async def _work(
    system: Respondent, waiting: Iterator[Sample], store: RunStore, progress: Progress
) -> None:
    for sample in waiting:
        _save(sample, await _respond(system, sample), store, progress)


async def _respond(system: Respondent, sample: Sample) -> Response | Failure:
    try:
        return await system.respond(sample)
    except CallError as error:
        return Failure.of(error)


def _save(
    sample: Sample, response: Response | Failure, store: RunStore, progress: Progress
) -> None:
    store.append(RunRecord(sample.id, store.requests[sample.id], response))
    progress.advanced(failed=isinstance(response, Failure))
