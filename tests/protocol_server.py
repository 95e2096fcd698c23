"""An HTTP server on the loopback with scripted replies.

`ProtocolServer` and `Reply` are only about HTTP. The providers' protocols are in the functions
that build replies; those here are for Chat Completions.
"""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email import message_from_bytes
from email.policy import HTTP
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Final, Self
from urllib.parse import parse_qs

if TYPE_CHECKING:
    from types import TracebackType


@dataclass(frozen=True, slots=True)
class ReceivedRequest:
    """A client's request; header names are lower-case, `body` is JSON, a form, or None."""

    method: str
    path: str
    query: Mapping[str, list[str]]
    headers: Mapping[str, str]
    body: Any


@dataclass(frozen=True, slots=True)
class Reply:
    """The response to one request.

    Attributes:
        status: HTTP status.
        body: bytes, or a value to send as JSON.
        headers: besides Content-Length; may include a `content-type`.
        delay: seconds before the response.
        trickle: seconds before every byte of the body.
        cut: number of bytes of the body after which to break the connection.
        reset: break the connection (RST) without a response.
        raw: bytes to send instead of an HTTP response, before the connection is closed.
    """

    status: int = 200
    body: object = None
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0
    trickle: float = 0.0
    cut: int | None = None
    reset: bool = False
    raw: bytes | None = None


Step = Reply | Callable[[ReceivedRequest], Reply]

RESET: Final = Reply(reset=True)
HANG: Final = Reply(delay=3600.0)


class ProtocolServer:
    """A server in threads of this process; a context manager.

    Attributes:
        requests: in order of arrival.
        peak: maximum number of concurrent requests.
        bytes_type: the default Content-Type of a body of bytes.
    """

    bytes_type = "application/json"

    def __init__(self) -> None:
        self.requests: list[ReceivedRequest] = []
        self.peak = 0
        self.stopping = threading.Event()
        self._open = 0
        self._steps: list[Step] = [Reply(status=500, body={"error": {"code": "no_script"}})]
        self._lock = threading.Lock()
        self._http = _HTTPServer(self)
        self._thread = threading.Thread(
            target=self._http.serve_forever, kwargs={"poll_interval": 0.01}
        )

    @property
    def url(self) -> str:
        """The base URL, without a path."""
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def script(self, *steps: Step) -> None:
        """Set the replies, in order; the last one repeats.

        A step is a reply, or a function from a request to a reply.
        """
        with self._lock:
            self._steps = list(steps)

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

    def arrive(self, request: ReceivedRequest) -> Step:
        with self._lock:
            self.requests.append(request)
            self._open += 1
            self.peak = max(self.peak, self._open)
            return self._steps.pop(0) if len(self._steps) > 1 else self._steps[0]

    def leave(self) -> None:
        with self._lock:
            self._open -= 1


class _HTTPServer(ThreadingHTTPServer):
    # Makes server_close() wait for the threads, so that no socket outlives a test.
    daemon_threads = False
    request_queue_size = 128

    def __init__(self, script: ProtocolServer) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.script = script


class _Handler(BaseHTTPRequestHandler):
    server: _HTTPServer

    def do_GET(self) -> None:
        self._answer("GET", None)

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers["Content-Length"]))
        kind = self.headers["Content-Type"]
        self._answer("POST", _form(kind, raw) if "multipart" in kind else json.loads(raw))

    def _answer(self, method: str, body: object) -> None:
        script = self.server.script
        path, _, query = self.path.partition("?")
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = ReceivedRequest(method, path, parse_qs(query), headers, body)
        step = script.arrive(request)
        try:
            reply = step if isinstance(step, Reply) else step(request)
            interrupted = reply.delay > 0 and script.stopping.wait(reply.delay)
        finally:
            script.leave()
        if reply.reset or interrupted:
            self._reset()
        else:
            with contextlib.suppress(ConnectionError):  # the client has stopped waiting
                self._send(reply)

    def _send(self, reply: Reply) -> None:
        if reply.raw is not None:
            self.wfile.write(reply.raw)
            self.close_connection = True
            return
        body = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
        self.send_response(reply.status)
        self.send_header("Content-Length", str(len(body)))
        octets = isinstance(reply.body, bytes)
        kind = self.server.script.bytes_type if octets else "application/json"
        for name, value in {"content-type": kind, **reply.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if not reply.trickle:
            self.wfile.write(body[: reply.cut])
            self.close_connection |= reply.cut is not None
            return
        for position in range(len(body)):
            if self.server.script.stopping.wait(reply.trickle):
                return
            self.wfile.write(body[position : position + 1])

    def _reset(self) -> None:
        # Closing with a linger time of zero sends RST instead of FIN. The socket closes with
        # the last file on it.
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.rfile.close()
        self.connection.close()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - overridden
        pass


def _form(kind: str, raw: bytes) -> dict[str, Any]:
    """Parse a multipart form; fields are text, or (file name, content)."""
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


def completion(
    content: str | None,
    *,
    finish_reason: str = "stop",
    refusal: str | None = None,
    usage: tuple[int, int] | None = (11, 7),
    counts: Mapping[str, object] | None = None,
    extra: Mapping[str, object] | None = None,
    model: str = "scripted-model",
    delay: float = 0.0,
) -> Reply:
    """Return a chat completion; `counts` are more keys of its usage, `extra` of its message.

    `usage` are the prompt and completion tokens; None for no usage.
    """
    message = {"role": "assistant", "content": content, "refusal": refusal, **(extra or {})}
    body: dict[str, object] = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": finish_reason}],
    }
    if usage is not None:
        prompt, answer = usage
        body["usage"] = {
            "prompt_tokens": prompt,
            "completion_tokens": answer,
            "total_tokens": prompt + answer,
            **(counts or {}),
        }
    return Reply(body=body, delay=delay)


def api_error(
    status: int,
    code: object = None,
    message: str = "scripted failure",
    *,
    kind: str = "invalid_request_error",
    param: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Reply:
    """Return an error in OpenAI's format; `kind` is its `type`."""
    error = {"message": message, "type": kind, "param": param, "code": code}
    return Reply(status=status, body={"error": error}, headers=headers or {})
