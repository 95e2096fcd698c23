"""Middleware of every request: headers, access log, metrics, exceptions, size of the body."""

from __future__ import annotations

import logging
import time
import traceback
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from prometheus_client import Histogram
from sqlalchemy.exc import DBAPIError
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse

import pii_bench
from pii_bench.web.settings import MOST_BYTES

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOG: Final = logging.getLogger("pii_bench.web")
_PACKAGE: Final = Path(pii_bench.__file__).parent

CONTENT_SECURITY_POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
        # No script may turn a string into HTML.
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)

HEADERS: Final = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    # With `no-referrer` browsers send forms with `Origin: null`.
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class Guard:
    """Middleware that sets headers, counts and logs requests, and answers a bug with 500.

    The log never holds personal text: no query string, body or exception message, and of the
    path only the route's template.
    """

    def __init__(self, app: ASGIApp, metrics: CollectorRegistry) -> None:
        self._app = app
        self._requests = Histogram(
            "pii_bench_request_seconds",
            "Time of requests",
            ("method", "route", "status"),
            registry=metrics,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] == "websocket":
            await self._handle_socket(scope, receive, send)
        elif scope["type"] == "http":
            await self._handle(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _handle_socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._app(scope, receive, send)
        except Exception as error:  # noqa: BLE001 -- it is logged without its message
            _log_bug(error)
            with suppress(RuntimeError):  # the socket is already closed
                await send({"type": "websocket.close", "code": 1011})

    async def _handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        start, status = time.perf_counter(), 0

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        try:
            await self._app(scope, receive, send_with_headers)
        except Exception as error:  # noqa: BLE001 -- it is logged without its message
            _log_bug(error)
            if not status:
                response = PlainTextResponse("Internal error. The server's log says where.", 500)
                await response(scope, receive, send_with_headers)
        finally:
            seconds = time.perf_counter() - start
            method, route = scope["method"], _route(scope)
            self._requests.labels(method, route, str(status)).observe(seconds)
            LOG.info("%s %s %d %.0f ms", method, route, status, 1000 * seconds)


class BodyLimit:
    """Middleware that answers 413 to a request whose body has more than `MOST_BYTES`.

    That of FastAPI (`max_body_size`) ignores the handlers of `pages`.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        received = 0

        async def receive_within_limit() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > MOST_BYTES:
                raise HTTPException(413, f"The request is too large: at most {MOST_BYTES:,} bytes.")
            return message

        await self._app(scope, receive_within_limit, send)


def _route(scope: Scope) -> str:
    if scope.get("endpoint") is not None and scope.get("route") is None:
        return "(static)"
    return getattr(scope.get("route"), "path", None) or "(no route)"


def _log_bug(error: Exception) -> None:
    frames = traceback.extract_tb(error.__traceback__)
    # The first frame is in this module.
    own = [frame for frame in frames if Path(frame.filename).is_relative_to(_PACKAGE)]
    places = dict.fromkeys(f"{frame.filename}:{frame.lineno}" for frame in (frames[-1], own[-1]))
    LOG.error("%s at %s", _kind(error), ", called at ".join(places))


def _kind(error: Exception) -> str:
    """Return the class of an error and the database's code, without messages, which hold values."""
    name = type(error).__name__
    if not isinstance(error, DBAPIError):
        return name
    codes = (getattr(error.orig, key, None) for key in ("sqlite_errorname", "sqlstate"))
    return " ".join([name, *filter(None, codes)])
