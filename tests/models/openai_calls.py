"""Calls of the Chat Completions adapter, as its tests make them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import pytest

from pii_bench.models.base import CallError, Message, Request, Sampling
from pii_bench.models.openai_compatible import OpenAICompatibleModel
from tests.protocol_server import Reply

if TYPE_CHECKING:
    from pii_bench.models.base import Completion

KEY: Final = "sk-planted-key-0123456789"
SAMPLE_TEXT: Final = "Rosalind Achebe lives at 14 Marlowe Court"
REQUEST: Final = Request(
    sample_id="multi-0001",
    prompt="naive",
    messages=(Message("system", "Be brief."), Message("user", SAMPLE_TEXT)),
    sampling=Sampling(temperature=0.0, max_tokens=321),
)


def ask(
    url: str, *, request: Request = REQUEST, timeout: float = 5.0, times: int = 1
) -> Completion:
    """Ask the same so many times at once; the first answer."""

    async def run() -> Completion:
        model = OpenAICompatibleModel(
            "openai", "gpt-test", api_key=KEY, base_url=f"{url}/v1", timeout=timeout
        )
        try:
            answers = await asyncio.gather(*[model.complete(request) for _ in range(times)])
        finally:
            await model.close()
        return answers[0]

    return asyncio.run(run())


def failure_of(url: str, *, timeout: float = 5.0) -> CallError:
    with pytest.raises(CallError) as caught:
        ask(url, timeout=timeout)
    return caught.value


def choices(*items: object) -> Reply:
    return Reply(body={"choices": list(items)})
