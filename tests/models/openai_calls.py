"""Calls of the Chat Completions adapter, as its tests make them."""

from __future__ import annotations

from typing import Final

from pii_bench.models.openai_compatible import OpenAICompatibleModel
from tests.models.one_call import Calls
from tests.protocol_server import Reply

KEY: Final = "sk-planted-key-0123456789"

calls: Final = Calls(
    lambda url, timeout: OpenAICompatibleModel(
        "openai", "gpt-test", api_key=KEY, base_url=f"{url}/v1", timeout=timeout
    )
)
ask, failure_of = calls.ask, calls.failure_of


def choices(*items: object) -> Reply:
    return Reply(body={"choices": list(items)})
