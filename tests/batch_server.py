"""A server on the loopback that holds batches, as a test scripts them.

What becomes of each request, when jobs end and which calls fail is here; the protocols of the
providers are in `batch_protocols`.
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
    """What becomes of one request: a model's answer, an error, or nothing.

    Attributes:
        kind: succeeded, errored, expired, cancelled, or absent (in no result).
        status: HTTP status of an error.
        code: the provider's code or type of an error.
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
    """What goes wrong at a call.

    Attributes:
        answer: said instead.
        done: whether the call has its effect all the same.
    """

    answer: Reply = RESET
    done: bool = False


@dataclass(slots=True)
class StoredJob:
    """A job as the server holds it."""

    id: str
    requests: dict[str, Any]
    metadata: Mapping[str, str]
    created: float
    looks: int = 0


class BatchServer(ProtocolServer):
    """What the three protocols share.

    Attributes:
        outcome: what becomes of a request, by its number in the job.
        looks: how often a job is found running before it has ended.
        final: the status in which jobs end, where it is not the usual one.
        faults: what goes wrong at the n-th call, from 0.
        jobs: by id.
        files: by id.
        clock: Unix time at which jobs are made.
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
        self._one_by_one = threading.Lock()
        self._calls = 0
        self.script(self._serve)

    @property
    def lines(self) -> list[str]:
        """Method and path of every call."""
        return [f"{call.method} {call.path}" for call in self.requests]

    def _serve(self, call: ReceivedRequest) -> Reply:
        with self._one_by_one:
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
        """Make a job, as a call would or as somebody else did."""
        name = f"job-{len(self.jobs) + 1}"
        self.jobs[name] = StoredJob(name, requests, metadata or {}, self.clock)
        return name

    def look_at(self, name: str) -> StoredJob:
        """A job that is asked about: it ends after so many looks."""
        self.jobs[name].looks += 1
        return self.jobs[name]

    def ended(self, job: StoredJob) -> bool:
        return job.looks > self.looks

    def outcomes(self, job: StoredJob) -> dict[str, Item]:
        return {name: self.outcome(number) for number, name in enumerate(job.requests)}
