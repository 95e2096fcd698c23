"""What the parts of a running server share; `of(request)` gives it to a handler."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from limits.storage import MemoryStorage
from limits.strategies import MovingWindowRateLimiter

if TYPE_CHECKING:
    from starlette.requests import HTTPConnection

    from pii_bench.web.accounts import Account
    from pii_bench.web.database import Database
    from pii_bench.web.masker import Masker
    from pii_bench.web.metrics import Metrics
    from pii_bench.web.settings import Settings


@dataclass(frozen=True, slots=True)
class State:
    """Of one server.

    Attributes:
        settings: as it was started.
        database: open.
        masker: asks the system about texts.
        metrics: what `/metrics` tells.
        limiter: counts requests, in memory.
        local: the account of whoever comes, as long as there are no others; None where
            accounts are required.
        local_csrf_token: what the forms of the local owner bring.
    """

    settings: Settings
    database: Database
    masker: Masker
    metrics: Metrics
    limiter: MovingWindowRateLimiter
    local: Account | None
    local_csrf_token: str


def new_limiter() -> MovingWindowRateLimiter:
    """One that has counted nothing."""
    return MovingWindowRateLimiter(MemoryStorage())


def of(connection: HTTPConnection) -> State:
    """What the server of this request has."""
    state: State = connection.app.state.web
    return state
