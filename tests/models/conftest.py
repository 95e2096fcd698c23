"""What tests of several models share."""

from __future__ import annotations

import functools
import ssl
from typing import TYPE_CHECKING

import pytest

from tests.protocol_server import ProtocolServer

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def server() -> Iterator[ProtocolServer]:
    with ProtocolServer() as server:
        yield server


@pytest.fixture(autouse=True, scope="package")
def one_ssl_context() -> Iterator[None]:
    """Read the certificates of the machine once: each client takes 40 ms for it."""
    with pytest.MonkeyPatch.context() as patch:
        once = functools.cache(ssl.create_default_context)
        patch.setattr(ssl, "create_default_context", once)
        yield
