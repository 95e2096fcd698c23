"""The settings of a server."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pii_bench.systems import DEFAULT_SYSTEM

LOOPBACK_HOSTS: Final = ("localhost", "127.0.0.1", "::1")

MOST_BYTES: Final = 10_000_000
"""Maximum size of a request body."""

MOST_CHARACTERS: Final = 50_000
"""Maximum length of a text."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of one server.

    Attributes:
        database: path of an SQLite file, or an SQLAlchemy URL such as `postgresql+psycopg://...`.
        host: address to bind to; if other machines can reach it, accounts are required.
        hosts: other names under which browsers reach the server.
        system: system that masks, named as for `--model`.
        base_url: URL of the system's chat model, if it is not the provider's.
        results: folder of stored runs.
        workers: number of processes that mask; 0 masks in a thread of the server.
        upstream: model service behind the proxy: a provider, or the base URL of a server with
            the Chat Completions API; None disables the proxy.
    """

    database: str = field(default="pii-bench.sqlite", repr=False)  # a URL may hold a password
    host: str = "127.0.0.1"
    port: int = 8300
    hosts: tuple[str, ...] = ()
    system: str = DEFAULT_SYSTEM
    base_url: str | None = None
    results: Path = Path("results")
    workers: int = 2
    upstream: str | None = None

    @property
    def is_loopback(self) -> bool:
        """True if only this machine can connect."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    @property
    def allowed_hosts(self) -> list[str]:
        """The values of the Host header to accept; a check against DNS rebinding."""
        if "*" in self.hosts:
            return ["*"]
        own = [] if self.is_loopback else [self.host]
        return [*LOOPBACK_HOSTS, *own, *self.hosts]
