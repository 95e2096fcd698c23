"""The three batch services against their protocols, for tests of any of them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pii_bench.models.anthropic_messages import AnthropicModel
from pii_bench.models.base import Message, Request, Sampling
from pii_bench.models.catalog import build_batch_service
from pii_bench.models.mistral_chat import MistralModel
from pii_bench.models.openai_compatible import OpenAICompatibleModel
from tests.batch_protocols import AnthropicBatches, MistralBatches, OpenAIBatches

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from pii_bench.models.base import Model, Outcome
    from pii_bench.models.batch import BatchService
    from tests.batch_server import BatchServer

    T = TypeVar("T")

KEY: Final = "sk-planted-key-0123456789"
SAMPLE_TEXT: Final = "Rosalind Achebe lives at 14 Marlowe Court"
TAG: Final = "00ff00ff00ff00ff"


def request(text: str = SAMPLE_TEXT, **changes: Any) -> Request:
    asked = Request(
        sample_id="multi-0001",
        prompt="naive",
        messages=(Message("system", "Be brief."), Message("user", text)),
        sampling=Sampling(temperature=0.0, max_tokens=321),
    )
    return replace(asked, **changes)


@dataclass(frozen=True, slots=True)
class Case:
    """One provider.

    Attributes:
        name: as results write it.
        serve: its protocol.
        build: a model of it at a base URL.
        lines: the calls of a job that is submitted, looked at once and read, in order.
    """

    name: str
    serve: Callable[[], BatchServer]
    build: Callable[[str, float], Model]
    lines: tuple[str, ...]

    def ask(
        self, url: str, action: Callable[[BatchService], Awaitable[T]], *, timeout: float = 5.0
    ) -> T:
        """What an action brings with a service at a base URL."""

        async def run() -> T:
            model = self.build(url, timeout)
            try:
                return await action(build_batch_service(model))
            finally:
                await model.close()

        return asyncio.run(run())


async def submit_and_read(service: BatchService, requests: list[Request]) -> dict[str, Outcome]:
    job = await service.submit(requests, TAG)
    assert (await service.poll(job)).ended
    return await read(service, job)


async def read(service: BatchService, job: str) -> dict[str, Outcome]:
    return {name: outcome async for name, outcome in service.results(job)}


ALL: Final = (
    Case(
        "openai",
        OpenAIBatches,
        lambda url, timeout: OpenAICompatibleModel(
            "openai", "gpt-test", api_key=KEY, base_url=f"{url}/v1", timeout=timeout
        ),
        (
            "POST /v1/files",
            "POST /v1/batches",
            "GET /v1/batches/job-1",
            "GET /v1/batches/job-1",
            "GET /v1/files/job-1-output/content",
        ),
    ),
    Case(
        "anthropic",
        AnthropicBatches,
        lambda url, timeout: AnthropicModel(
            "anthropic", "claude-test", api_key=KEY, base_url=url, timeout=timeout
        ),
        (
            "POST /v1/messages/batches",
            "GET /v1/messages/batches/job-1",
            "GET /v1/messages/batches/job-1/results",
        ),
    ),
    Case(
        "mistral",
        MistralBatches,
        lambda url, timeout: MistralModel(
            "mistral", "mistral-test", api_key=KEY, base_url=url, timeout=timeout
        ),
        (
            "POST /v1/files",
            "POST /v1/batch/jobs",
            "GET /v1/batch/jobs/job-1",
            "GET /v1/batch/jobs/job-1",
            "GET /v1/files/job-1-output/content",
        ),
    ),
)
CASES: Final = {case.name: case for case in ALL}
