"""Calls of an adapter over HTTP, as the tests of all of them make them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pytest

from pii_bench.errors import ProviderRefusedError
from pii_bench.models.base import CallError, Message, Request, Sampling

if TYPE_CHECKING:
    from collections.abc import Callable

    from pii_bench.models.base import Completion, Model

SAMPLE_TEXT: Final = "Rosalind Achebe lives at 14 Marlowe Court"
MESSAGES: Final = (Message("system", "Be brief."), Message("user", SAMPLE_TEXT))
REQUEST: Final = Request(
    sample_id="multi-0001",
    prompt="naive",
    messages=MESSAGES,
    sampling=Sampling(temperature=0.0, max_tokens=321),
    draw=3,
)


@dataclass(frozen=True, slots=True)
class Calls:
    """Makes one call, with a model of its own.

    Attributes:
        connect: a model behind a URL whose attempts take at most so many seconds.
    """

    connect: Callable[[str, float], Model]

    def ask(
        self, url: str, request: Request = REQUEST, *, timeout: float = 5.0, times: int = 1
    ) -> Completion:
        """Ask the same so many times at once; the first answer."""

        async def run() -> Completion:
            model = self.connect(url, timeout)
            try:
                answers = await asyncio.gather(*[model.complete(request) for _ in range(times)])
            finally:
                await model.close()
            return answers[0]

        return asyncio.run(run())

    def failure_of(self, url: str, *, timeout: float = 5.0) -> CallError:
        with pytest.raises(CallError) as caught:
            self.ask(url, timeout=timeout)
        return caught.value

    def refusal_of(self, url: str) -> str:
        with pytest.raises(ProviderRefusedError) as caught:
            self.ask(url)
        return str(caught.value)
