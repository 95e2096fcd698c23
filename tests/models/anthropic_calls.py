"""Calls of the Messages adapter, as its tests make them."""

from __future__ import annotations

from typing import Final

from pii_bench.models.anthropic_messages import AnthropicModel
from tests.models.one_call import Calls

KEY: Final = "sk-ant-planted-key-0123456789"

calls: Final = Calls(
    lambda url, timeout: AnthropicModel("claude-test", api_key=KEY, base_url=url, timeout=timeout)
)
ask, failure_of, refusal_of = calls.ask, calls.failure_of, calls.refusal_of
