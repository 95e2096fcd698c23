"""Calls of the Mistral adapter, as its tests make them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from pii_bench.models.base import Message, Request, Sampling
from pii_bench.models.mistral_chat import MistralModel

if TYPE_CHECKING:
    from pii_bench.models.base import Completion

KEY: Final = "planted0key0123456789"
SAMPLE_TEXT: Final = "Rosalind Achebe lives at 14 Marlowe Court"
MESSAGES: Final = (Message("system", "Be brief."), Message("user", SAMPLE_TEXT))
REQUEST: Final = Request(
    sample_id="multi-0001",
    prompt="naive",
    messages=MESSAGES,
    sampling=Sampling(temperature=0.0, max_tokens=321),
    draw=3,
)


def ask(url: str, request: Request = REQUEST, *, timeout: float = 5.0) -> Completion:
    async def run() -> Completion:
        model = MistralModel("mistral-test", api_key=KEY, base_url=url, timeout=timeout)
        try:
            return await model.complete(request)
        finally:
            await model.close()

    return asyncio.run(run())
