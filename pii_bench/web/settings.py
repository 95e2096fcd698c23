"""What a server is told when it starts."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pii_bench.systems import DEFAULT_SYSTEM

LOOPBACK_HOSTS: Final = ("localhost", "127.0.0.1", "::1")
MEGABYTE: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of one server.

    Attributes:
        database: path of an SQLite file, or an SQLAlchemy URL such as `postgresql+psycopg://...`.
        host: address to bind to; anything but the loopback needs accounts.
        port: TCP port.
        hosts: other names under which browsers reach the server.
        system: what masks, a name as `--model` takes it.
        base_url: where the system's chat model is reached, if not at its provider.
        results: folder of stored runs.
        workers: processes that mask; 0 for a thread of the server's own.
        most_bytes: of the body of one request.
        most_characters: of one text.
        requests_per_minute: of one account, or of one address without account.
        logins_per_minute: of one address, and for one name.
        session_days: how long a login lasts.
        upstream: who answers the proxy's chats, a provider or the base URL of a server that
            speaks Chat Completions; None: there is no proxy.
    """

    database: str = field(default="pii-bench.sqlite", repr=False)  # a URL may hold a password
    host: str = "127.0.0.1"
    port: int = 8300
    hosts: tuple[str, ...] = ()
    system: str = DEFAULT_SYSTEM
    base_url: str | None = None
    results: Path = Path("results")
    workers: int = 2
    most_bytes: int = 10 * MEGABYTE
    most_characters: int = 50_000
    requests_per_minute: int = 1200
    logins_per_minute: int = 10
    session_days: int = 7
    upstream: str | None = None

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can connect."""
        return is_loopback(self.host)

    @property
    def allowed_hosts(self) -> list[str]:
        """What the Host header may say; another name that leads here is an attack."""
        here = LOOPBACK_HOSTS if self.is_loopback else (*LOOPBACK_HOSTS, self.host)
        return ["*"] if "*" in self.hosts else [*here, *self.hosts]


def is_loopback(host: str) -> bool:
    """Whether an address to bind to is reached from this machine alone."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
