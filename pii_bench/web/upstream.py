"""Who answers the chats of the proxy."""

from __future__ import annotations

import os
from typing import Final

import httpx2

from pii_bench.errors import MissingKeyError, UnknownNameError
from pii_bench.models.catalog import CUSTOM_ENDPOINT_KEY, PROVIDERS, Protocol, normalise_base_url

_TIMEOUT: Final = httpx2.Timeout(600.0, connect=20.0)


class Upstream:
    """Who answers the proxy's chats.

    Args:
        name: `openai`, another provider that speaks the protocol, or a base URL.

    Raises:
        MissingKeyError: the provider's key is not set.
        UnknownNameError: no such provider, or it speaks another protocol.
        PiiBenchError: the base URL is not one.
    """

    def __init__(self, name: str) -> None:
        speaking = {
            key: provider
            for key, provider in PROVIDERS.items()
            if provider.protocol is Protocol.CHAT_COMPLETIONS
        }
        if "://" in name:
            self.url = normalise_base_url(name)
            # Servers of one's own want none.
            key = os.environ.get(CUSTOM_ENDPOINT_KEY, "")
        elif name in speaking:
            self.url = speaking[name].base_url
            variable = speaking[name].key_variable
            key = os.environ.get(variable, "")
            if not key:
                raise MissingKeyError(name, variable)
        else:
            raise UnknownNameError("upstream", name, [*speaking, "https://..."])
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self.client = httpx2.AsyncClient(timeout=_TIMEOUT, headers=headers)

    async def close(self) -> None:
        """Close its connections."""
        await self.client.aclose()
