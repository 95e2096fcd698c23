"""What the parts of a running server share; `of(request)` gives it to a handler."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pii_bench.web.masker import BusyError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from limits.strategies import MovingWindowRateLimiter
    from starlette.requests import HTTPConnection

    from pii_bench.web.accounts import User
    from pii_bench.web.database import Database
    from pii_bench.web.masker import Masker
    from pii_bench.web.middleware import Metrics
    from pii_bench.web.proxy import Upstream
    from pii_bench.web.settings import Settings


@dataclass(frozen=True, slots=True)
class State:
    """Of one server.

    Attributes:
        settings: as it was started.
        database: open.
        masker: asks the system about texts.
        uploads: lets few files at a time be read.
        metrics: what `/metrics` tells.
        upstream: who answers the proxy's chats; None: there is no proxy.
        limiter: counts requests, in memory.
        local: every visitor as long as there are no accounts; None where they are required.
    """

    settings: Settings
    database: Database
    masker: Masker
    uploads: Gate
    metrics: Metrics
    upstream: Upstream | None
    limiter: MovingWindowRateLimiter
    local: User | None


class Gate:
    """Lets few in at a time, and few wait.

    Args:
        inside: the most at a time.
        waiting: the most who wait.
    """

    def __init__(self, inside: int, waiting: int) -> None:
        self._inside = asyncio.Semaphore(inside)
        self._most = inside + waiting
        self._here = 0

    @asynccontextmanager
    async def one(self) -> AsyncIterator[None]:
        """Be let in.

        Raises:
            BusyError: too many wait already.
        """
        if self._here >= self._most:
            raise BusyError("too many wait: try again in a minute")
        self._here += 1
        try:
            async with self._inside:
                yield
        finally:
            self._here -= 1


def of(connection: HTTPConnection) -> State:
    """What the server of this request has."""
    state: State = connection.app.state.web
    return state
