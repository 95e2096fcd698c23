"""A fake batch API and a fake clock for tests of batch runs."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pii_bench.models.base import Completion
from pii_bench.models.batch import (
    Absence,
    BatchLimits,
    BatchState,
    UnknownJobError,
    absent_from_results,
    custom_id,
)
from pii_bench.runs.batch import Polling, run_batch
from pii_bench.runs.records import RunRecord
from pii_bench.runs.store import RunFiles, RunStore, read_responses
from tests.builders import make_sample
from tests.fakes import FakeModel, RecordingProgress, fake_system

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence

    from pii_bench.datasets.sample import Sample
    from pii_bench.errors import ProviderRefusedError
    from pii_bench.models.base import CallError, Outcome, Request
    from pii_bench.systems.prompted import PromptedSystem

SAMPLES = [make_sample(f"s{number}") for number in range(1, 7)]
IDS = [sample.id for sample in SAMPLES]
START = 1_800_000_000.0
DAY = 86400.0


class Crash(BaseException):
    """The process dies."""


@dataclass
class Clock:
    """A clock that moves only while a caller sleeps."""

    now: float = START
    pauses: list[float] = field(default_factory=list)

    def read(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds

    def polling(self, *, wait: bool = True) -> Polling:
        return Polling(wait=wait, sleep=self.sleep, now=self.read)


class FakeService:
    """A `BatchService` in this process; its jobs survive crashes of the run.

    Attributes:
        outcome: returns the result of a request, None to leave it out of the results.
        looks: number of polls that find a job still running.
        faults: exceptions by step, from 0. Each call and each result is a step.
        late: True if a failing submission takes effect before it raises.
        undecided: number of searches for a job that end undecided.
        sought: submission time and size of each job that was searched for.
    """

    def __init__(self) -> None:
        self.outcome: Callable[[Request], Outcome | None] = lambda request: Completion(
            f"answer to {request.sample_id}", batched=True
        )
        self.limits = BatchLimits(requests=100, size=10**6)
        self.looks = 1
        self.faults: dict[int, BaseException] = {}
        self.late = False
        self.steps: list[str] = []
        self.jobs: dict[str, dict[str, Request]] = {}
        self.looked: dict[str, int] = {}
        self.absent: CallError | ProviderRefusedError = absent_from_results()
        self.undecided = 0
        self.sought: list[tuple[float, int]] = []
        self.forgotten = False

    @property
    def submitted(self) -> list[list[str]]:
        """Sample ids of each job."""
        return [[request.sample_id for request in job.values()] for job in self.jobs.values()]

    def size(self, request: Request) -> int:
        return len(request.messages[-1].content)

    async def submit(self, requests: Sequence[Request], tag: str) -> str:
        fault = self._step("submit")
        if fault and not self.late:
            raise fault
        name = f"job-{len(self.jobs) + 1}"
        self.jobs[name] = {
            custom_id(tag, number): request for number, request in enumerate(requests)
        }
        if fault:
            raise fault
        return name

    async def find(self, tag: str, *, since: float, requests: int) -> str | Absence:
        self._raise("find")
        if self.undecided:
            self.undecided -= 1
            return Absence.UNDECIDED
        self.sought.append((since, requests))
        for name, job in self.jobs.items():
            if custom_id(tag, 0) in job:
                return name
        return Absence.SURE

    async def poll(self, job: str) -> BatchState:
        self._raise("poll")
        if self.forgotten:
            raise UnknownJobError("fake", job)
        self.looked[job] = self.looked.get(job, 0) + 1
        ended, total = self.looked[job] > self.looks, len(self.jobs[job])
        return BatchState(ended, total if ended else 0, total, self.absent)

    async def results(self, job: str) -> AsyncGenerator[tuple[str, Outcome], None]:
        # Providers do not keep the order of the requests.
        for name, request in reversed(self.jobs[job].items()):
            self._raise("result")
            if (outcome := self.outcome(request)) is not None:
                yield name, outcome

    def _step(self, name: str) -> BaseException | None:
        self.steps.append(name)
        return self.faults.get(len(self.steps) - 1)

    def _raise(self, name: str) -> None:
        if fault := self._step(name):
            raise fault


@dataclass
class Bench:
    """Several runs in a row; `running` jobs were still running when the last one ended."""

    files: RunFiles
    service: FakeService = field(default_factory=FakeService)
    clock: Clock = field(default_factory=Clock)
    system: PromptedSystem = field(default_factory=lambda: fake_system(FakeModel()))
    progress: RecordingProgress = field(default_factory=RecordingProgress)
    running: int = 0

    def run(self, samples: Sequence[Sample] = SAMPLES, *, wait: bool = True) -> None:
        requests = {sample.id: self.system.request_hash(sample) for sample in SAMPLES}
        self.progress = RecordingProgress()
        with RunStore(self.files, requests) as store:
            self.running = asyncio.run(
                run_batch(
                    self.system,
                    samples,
                    store,
                    service=self.service,
                    progress=self.progress,
                    polling=self.clock.polling(wait=wait),
                )
            )

    def stored(self) -> list[RunRecord]:
        return list(read_responses(self.files.responses))

    def expected(self, samples: Sequence[Sample] = SAMPLES) -> list[RunRecord]:
        """Return the records of a run in which every request is answered."""
        return [
            RunRecord(
                sample.id,
                self.system.request_hash(sample),
                Completion(f"answer to {sample.id}", batched=True),
            )
            for sample in samples
        ]
