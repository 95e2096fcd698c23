"""A server on the loopback that holds batches, as a test scripts them.

What becomes of each request, when jobs end and which calls fail is here; the protocols of the
providers are in `batch_protocols`.
"""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import threading
from dataclasses import dataclass, field
from email import message_from_bytes
from email.policy import HTTP
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import parse_qs, urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType


@dataclass(frozen=True, slots=True)
class Received:
    """One call; header names are lower-case, `body` is JSON, a form, or None."""

    method: str
    path: str
    query: Mapping[str, list[str]]
    headers: Mapping[str, str]
    body: Any

    @property
    def line(self) -> str:
        return f"{self.method} {self.path}"


@dataclass(frozen=True, slots=True)
class Answer:
    """What the server says; bytes go as they are, all else as JSON.

    Attributes:
        cut: break the connection after so many bytes of the body.
        delay: seconds before it is said.
    """

    status: int = 200
    body: object = None
    headers: Mapping[str, str] = field(default_factory=dict)
    cut: int | None = None
    delay: float = 0.0


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
        answer: said instead; None to break the connection.
        done: whether the call has its effect all the same.
    """

    answer: Answer | None = None
    done: bool = False


@dataclass(slots=True)
class StoredJob:
    """A job as the server holds it."""

    id: str
    requests: dict[str, Any]
    metadata: Mapping[str, str]
    created: float
    looks: int = 0


class BatchServer:
    """What the three protocols share; a context manager.

    Attributes:
        received: all calls in order.
        outcome: what becomes of a request, by its number in the job.
        looks: how often a job is found running before it has ended.
        final: the status in which jobs end, where it is not the usual one.
        faults: what goes wrong at the n-th call, from 0.
        jobs: by id.
        files: by id.
        clock: Unix time at which jobs are made.
    """

    def __init__(self) -> None:
        self.received: list[Received] = []
        self.outcome: Callable[[int], Item] = lambda number: Item(text=f"answer {number}")
        self.looks = 0
        self.final = ""
        self.faults: dict[int, Fault] = {}
        self.jobs: dict[str, StoredJob] = {}
        self.files: dict[str, bytes] = {}
        self.clock = 1_800_000_000.0
        self.stopping = threading.Event()
        self._lock = threading.Lock()
        self._http = _HTTPServer(self)
        self._thread = threading.Thread(
            target=self._http.serve_forever, kwargs={"poll_interval": 0.01}
        )

    @property
    def url(self) -> str:
        """Base URL, without a path."""
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    @property
    def lines(self) -> list[str]:
        """Method and path of every call."""
        return [call.line for call in self.received]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stopping.set()
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()

    def serve(self, call: Received) -> Answer | None:
        """The answer to a call; None breaks the connection."""
        with self._lock:
            fault = self.faults.get(len(self.received))
            self.received.append(call)
            if fault is None:
                return self.handle(call)
            if fault.done:
                self.handle(call)
            return fault.answer

    def handle(self, call: Received) -> Answer:
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


class _HTTPServer(ThreadingHTTPServer):
    # server_close() then waits for the threads, so that no socket outlives a test.
    daemon_threads = False
    request_queue_size = 128

    def __init__(self, batches: BatchServer) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.batches = batches


class _Handler(BaseHTTPRequestHandler):
    server: _HTTPServer

    def do_GET(self) -> None:
        self._answer("GET", None)

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers["Content-Length"]))
        kind = self.headers["Content-Type"]
        self._answer("POST", json.loads(raw) if "json" in kind else _form(kind, raw))

    def _answer(self, method: str, body: object) -> None:
        url = urlsplit(self.path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        call = Received(method, url.path, parse_qs(url.query), headers, body)
        answer = self.server.batches.serve(call)
        if answer is None:
            self._reset()
            return
        self.server.batches.stopping.wait(answer.delay)
        raw = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
        with contextlib.suppress(ConnectionError):  # the client has stopped waiting
            self.send_response(answer.status)
            octets = isinstance(answer.body, bytes)
            kind = "application/octet-stream" if octets else "application/json"
            self.send_header("Content-Type", answer.headers.get("content-type", kind))
            self.send_header("Content-Length", str(len(raw)))
            for name in answer.headers.keys() - {"content-type"}:
                self.send_header(name, answer.headers[name])
            self.end_headers()
            self.wfile.write(raw[: answer.cut])
        if answer.cut is not None:
            self.close_connection = True

    def _reset(self) -> None:
        # Closing with a linger time of zero sends RST instead of FIN. The socket only
        # closes with the last file on it.
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.rfile.close()
        self.connection.close()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - overridden
        pass


def _form(kind: str, raw: bytes) -> dict[str, Any]:
    """The fields of a multipart form: text, or (file name, content)."""
    message = message_from_bytes(b"Content-Type: " + kind.encode() + b"\r\n\r\n" + raw, policy=HTTP)
    form: dict[str, Any] = {}
    for part in message.iter_parts():
        content = part.get_payload(decode=True)
        assert isinstance(content, bytes)
        name = part.get_param("name", header="content-disposition")
        form[str(name)] = (
            (part.get_filename(), content) if part.get_filename() else content.decode()
        )
    return form
