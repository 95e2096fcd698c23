"""The shared objects of a running server; a route gets them from `state.of(request)`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from anyio import CapacityLimiter
    from httpx2 import AsyncClient
    from limits.strategies import MovingWindowRateLimiter
    from prometheus_client import CollectorRegistry
    from starlette.requests import HTTPConnection

    from pii_bench.web.accounts import User
    from pii_bench.web.database import Database
    from pii_bench.web.masker import Masker
    from pii_bench.web.settings import Settings


@dataclass(frozen=True, slots=True)
class State:
    """The shared objects of one server.

    Attributes:
        uploads: limit of the files that are read at a time.
        upstream: client of the model service behind the proxy; None without a proxy.
        local: user of all requests as long as there are no accounts; None if a login is
            required.
    """

    settings: Settings
    database: Database
    masker: Masker
    uploads: CapacityLimiter
    metrics: CollectorRegistry
    upstream: AsyncClient | None
    limiter: MovingWindowRateLimiter
    local: User | None


def of(connection: HTTPConnection) -> State:
    """Return the state of the server that received a request."""
    state: State = connection.app.state.web
    return state
