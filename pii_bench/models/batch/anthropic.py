"""Batches of Anthropic's Messages API.

Sources: the API's reference (platform.claude.com/docs/en/api/messages/batches) and its guide to
batch processing; anthropic 2.12.0. A batch has no name and no metadata: which of several it is
tell only the custom ids in its results.
"""

from __future__ import annotations

import json
from contextlib import aclosing
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import anthropic

from pii_bench.models.anthropic_messages import (
    PROVIDER,
    judge,
    read_completion,
    read_failure,
    request_body,
    version_headers,
)
from pii_bench.models.base import CallError
from pii_bench.models.batch.base import (
    LIMITS,
    RESULTS_GONE,
    Absence,
    BatchState,
    RawAnswer,
    UnknownJobError,
    absent_from_results,
    answer_of,
    batched,
    count_of,
    custom_id,
    id_of,
    is_id,
    raised,
    read_results,
)
from pii_bench.models.service import attempt, parse_json

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Sequence

    from pii_bench.models.anthropic_messages import AnthropicModel
    from pii_bench.models.base import Outcome, Request
    from pii_bench.models.batch.base import BatchLimits

_PAGE: Final = 100
# Our clock and the provider's may differ by so many seconds.
_CLOCKS: Final = 3600.0
# The custom id and the keys around a request.
_OVERHEAD: Final = 200


class AnthropicBatchService:
    """Batches for one model of Anthropic (`BatchService`).

    Args:
        model: who made it closes it.
    """

    def __init__(self, model: AnthropicModel) -> None:
        self._client, self._model = model.client, model.model

    @property
    def limits(self) -> BatchLimits:
        """Half of what the API allows (100,000 requests, 256 MB), and less."""
        return LIMITS

    def size(self, request: Request) -> int:
        """The bytes of its parameters, and of the keys around them."""
        return len(json.dumps(request_body(self._model, request))) + _OVERHEAD

    async def submit(self, requests: Sequence[Request], tag: str) -> str:
        """Create a batch; see `BatchService`."""
        batches = self._client.messages.batches.with_raw_response
        items: list[Any] = [
            {"custom_id": custom_id(tag, number), "params": request_body(self._model, request)}
            for number, request in enumerate(requests)
        ]
        headers = version_headers(requests[0].sampling.temperature)
        return id_of(await self._call(batches.create(requests=items, extra_headers=headers)))

    async def find(self, tag: str, *, since: float, requests: int) -> str | Absence:
        """Look into the results of batches of that time and size; see `BatchService`."""
        absence = Absence.SURE
        async for job, state in self._created_since(since - _CLOCKS):
            if state.total != requests:
                continue
            if not state.ended:
                absence = Absence.UNDECIDED
            elif (await self._first_custom_id(job)).startswith(f"{tag}-"):
                return job
        return absence

    async def poll(self, job: str) -> BatchState:
        """Retrieve a batch; see `BatchService`."""
        batches = self._client.messages.batches.with_raw_response
        missing = UnknownJobError(PROVIDER, job)
        return _state(await self._call(batches.retrieve(job), missing=missing))

    async def results(self, job: str) -> AsyncGenerator[tuple[str, Outcome], None]:
        """Read a batch's results; see `BatchService`."""
        async with aclosing(self._lines(job)) as lines:
            async for name, line in lines:
                yield name, batched(_outcome(line.get("result"), self._model))

    async def _created_since(self, moment: float) -> AsyncIterator[tuple[str, BatchState]]:
        # The newest come first.
        batches = self._client.messages.batches.with_raw_response
        after: str | anthropic.Omit = anthropic.omit
        while True:
            match await self._call(batches.list(limit=_PAGE, after_id=after)):
                case {"data": list() as jobs, "has_more": bool() as more}:
                    pass
                case _:
                    raise CallError("bad_response", "no list of batches")
            for job in jobs:
                if _created(job) < moment:
                    return
                after = job["id"]
                # The results of an archived one are gone: it cannot be told from another.
                if job.get("archived_at") is None:
                    yield job["id"], _state(job)
            if not more or not jobs:
                return

    async def _first_custom_id(self, job: str) -> str:
        async with aclosing(self._lines(job)) as lines:
            async for name, _ in lines:
                return name
        return ""

    async def _lines(self, job: str) -> AsyncGenerator[tuple[str, dict[str, Any]], None]:
        # Not `batches.results`: it sends the key to the address that an answer names.
        call = self._client.get(
            f"/v1/messages/batches/{job}/results",
            cast_to=object,
            stream=True,
            stream_cls=anthropic.AsyncStream[object],
        )
        gone = CallError(RESULTS_GONE)
        stream = await answer_of(call, anthropic.APIError, partial(self._failure, gone))
        async with stream, aclosing(read_results(stream.response)) as lines:
            async for item in lines:
                yield item

    async def _call(
        self, call: Awaitable[RawAnswer], *, missing: UnknownJobError | None = None
    ) -> object:
        answer = await answer_of(call, anthropic.APIError, partial(self._failure, missing))
        return parse_json(answer.http_response.content)

    def _failure(self, missing: Exception | None, error: anthropic.APIError) -> Exception:
        if missing is not None and isinstance(error, anthropic.NotFoundError):
            return missing
        return raised(read_failure(error, model=self._model))


def _state(job: object) -> BatchState:
    match job:
        case {"processing_status": str() as status, "request_counts": dict() as counts}:
            pass
        case _:
            raise CallError("bad_response", "a batch without a status")
    total = sum(map(count_of, counts.values()))
    return BatchState(
        ended=status == "ended",
        finished=total - count_of(counts.get("processing")),
        total=total,
        absent=absent_from_results(),
    )


def _created(job: object) -> float:
    match job:
        case {"id": name, "created_at": str() as moment} if is_id(name):
            pass
        case _:
            raise CallError("bad_response", "a batch without a date")
    try:
        return datetime.fromisoformat(moment).timestamp()
    except (ValueError, OverflowError):
        pass
    raise CallError("bad_response", "a batch without a date")


def _outcome(result: object, model: str) -> Outcome:
    match result:
        case {"type": "succeeded", "message": message}:
            return attempt(read_completion, message)
        case {"type": "errored", "error": error}:
            return judge(None, error, model=model)
        case {"type": "expired"}:
            return CallError("expired")
        case {"type": "canceled"}:
            return CallError("cancelled")
    return CallError("bad_response", "a result of unknown type")
