"""The three batch services with their fake servers."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pii_bench.models.base import Message
from pii_bench.models.catalog import build_batch_service
from tests.batch_protocols import AnthropicBatches, MistralBatches, OpenAIBatches
from tests.models.adapters import REQUEST, SAMPLE_TEXT, SERVICES

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from pii_bench.models.base import Outcome, Request
    from pii_bench.models.batch import BatchService, BatchState
    from tests.batch_server import BatchServer

    T = TypeVar("T")

TAG: Final = "00ff00ff00ff00ff"


def request(text: str = SAMPLE_TEXT, **changes: Any) -> Request:
    messages = (Message("system", "Be brief."), Message("user", text))
    return replace(REQUEST, messages=messages, **changes)


@dataclass(frozen=True, slots=True)
class Case:
    """One provider.

    Attributes:
        name: of the provider.
        serve: its fake server.
        lines: the HTTP calls to submit a job, poll it once and read it, in order.
    """

    name: str
    serve: Callable[[], BatchServer]
    lines: tuple[str, ...]

    def ask(
        self, url: str, action: Callable[[BatchService], Awaitable[T]], *, timeout: float = 5.0
    ) -> T:
        """Run an action with a service for a base URL."""

        async def run() -> T:
            model = SERVICES[self.name].connect(url, timeout)
            try:
                return await action(build_batch_service(model))
            finally:
                await model.close()

        return asyncio.run(run())


async def submit_and_poll(
    service: BatchService, requests: Sequence[Request], tag: str = TAG
) -> tuple[str, BatchState]:
    """Return the job and its state."""
    job = await service.submit(requests, tag)
    return job, await service.poll(job)


async def run_job(
    service: BatchService, requests: list[Request]
) -> tuple[BatchState, dict[str, Outcome]]:
    """Return the state after one poll, and the results."""
    job, state = await submit_and_poll(service, requests)
    return state, await read(service, job)


async def submit_and_read(service: BatchService, requests: list[Request]) -> dict[str, Outcome]:
    state, outcomes = await run_job(service, requests)
    assert state.ended
    return outcomes


async def read(service: BatchService, job: str) -> dict[str, Outcome]:
    return {name: outcome async for name, outcome in service.results(job)}


CASES: Final = {
    case.name: case
    for case in (
        Case(
            "openai",
            OpenAIBatches,
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
            (
                "POST /v1/messages/batches",
                "GET /v1/messages/batches/job-1",
                "GET /v1/messages/batches/job-1/results",
            ),
        ),
        Case(
            "mistral",
            MistralBatches,
            (
                "POST /v1/files",
                "POST /v1/batch/jobs",
                "GET /v1/batch/jobs/job-1",
                "GET /v1/batch/jobs/job-1",
                "GET /v1/files/job-1-output/content",
            ),
        ),
    )
}
