"""What tests of several models share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.protocol_server import ProtocolServer

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def server() -> Iterator[ProtocolServer]:
    with ProtocolServer() as server:
        yield server
