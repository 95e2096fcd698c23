"""Calls of the Mistral adapter, as its tests make them."""

from __future__ import annotations

from typing import Final

from pii_bench.models.mistral_chat import MistralModel
from tests.models.one_call import Calls

KEY: Final = "planted0key0123456789"

calls: Final = Calls(
    lambda url, timeout: MistralModel("mistral-test", api_key=KEY, base_url=url, timeout=timeout)
)
ask, failure_of, refusal_of = calls.ask, calls.failure_of, calls.refusal_of
