"""A server on the loopback with a batch API, scripted by a test.

The outcome of each request, the end of jobs and the failures of calls are here; the protocols of
the providers are in `batch_protocols`.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.protocol_server import RESET, ProtocolServer, Reply

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.protocol_server import ReceivedRequest


@dataclass(frozen=True, slots=True)
class Item:
    """The outcome of one request: a model's answer, an error, or nothing.

    `kind` is succeeded, errored, expired, cancelled, or absent (in no result); `status` and `code`
    are those of an error.
    """

    kind: str = "succeeded"
    text: str = ""
    status: int = 200
    code: str = ""


EXPIRED = Item("expired")
CANCELLED = Item("cancelled")
ABSENT = Item("absent")


@dataclass(frozen=True, slots=True)
class Fault:
    """A failure of a call, which may have its effect nevertheless (`done`)."""

    answer: Reply = RESET
    done: bool = False


@dataclass(slots=True)
class StoredJob:
    """A job on the server."""

    id: str
    requests: dict[str, Any]
    metadata: Mapping[str, str]
    created: float
    looks: int = 0


class BatchServer(ProtocolServer):
    """The common part of the three protocols.

    Attributes:
        outcome: returns the outcome of a request by its number in the job.
        looks: number of polls before a job has ended.
        final: the final status of jobs; empty for success.
        faults: failures by number of the call, from 0.
        clock: Unix time at which jobs are created.
    """

    bytes_type = "application/octet-stream"

    def __init__(self) -> None:
        super().__init__()
        self.outcome: Callable[[int], Item] = lambda number: Item(text=f"answer {number}")
        self.looks = 0
        self.final = ""
        self.faults: dict[int, Fault] = {}
        self.jobs: dict[str, StoredJob] = {}
        self.files: dict[str, bytes] = {}
        self.clock = 1_800_000_000.0
        self._lock_calls = threading.Lock()
        self._calls = 0
        self.script(self._serve)

    @property
    def lines(self) -> list[str]:
        """The method and path of every call."""
        return [f"{call.method} {call.path}" for call in self.requests]

    def _serve(self, call: ReceivedRequest) -> Reply:
        with self._lock_calls:
            fault = self.faults.get(self._calls)
            self._calls += 1
            if fault is None:
                return self.handle(call)
            if fault.done:
                self.handle(call)
            return fault.answer

    def handle(self, call: ReceivedRequest) -> Reply:
        raise NotImplementedError

    def add_job(self, requests: dict[str, Any], metadata: Mapping[str, str] | None = None) -> str:
        """Create a job, for a call or as if by somebody else."""
        name = f"job-{len(self.jobs) + 1}"
        self.jobs[name] = StoredJob(name, requests, metadata or {}, self.clock)
        return name

    def look_at(self, name: str) -> StoredJob:
        """Return a polled job; it ends after `looks` polls."""
        self.jobs[name].looks += 1
        return self.jobs[name]

    def ended(self, job: StoredJob) -> bool:
        return job.looks > self.looks

    def outcomes(self, job: StoredJob) -> dict[str, Item]:
        return {name: self.outcome(number) for number, name in enumerate(job.requests)}
