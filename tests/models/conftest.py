"""Fixtures for tests of models."""

from __future__ import annotations

import functools
import ssl
from typing import TYPE_CHECKING

import pytest

from tests.protocol_server import ProtocolServer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.models.adapters import Adapter, Asker


@pytest.fixture
def server() -> Iterator[ProtocolServer]:
    with ProtocolServer() as server:
        yield server


@pytest.fixture
def adapter(request: pytest.FixtureRequest) -> Adapter:
    # Slow to import, and many tests of this folder need no SDK.
    from tests.models.adapters import SERVICES

    return SERVICES[request.param]


@pytest.fixture
def ask(adapter: Adapter, server: ProtocolServer) -> Asker:
    from tests.models.adapters import Asker

    return Asker(adapter.connect, server)


@pytest.fixture(autouse=True, scope="package")
def one_ssl_context() -> Iterator[None]:
    """Read the machine's certificates once: it takes each client 40 ms."""
    with pytest.MonkeyPatch.context() as patch:
        once = functools.cache(ssl.create_default_context)
        patch.setattr(ssl, "create_default_context", once)
        yield
