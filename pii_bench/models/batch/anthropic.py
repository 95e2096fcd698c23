"""Batches of Anthropic's Messages API.

Sources: the API's reference (platform.claude.com/docs/en/api/messages/batches) and its guide to
batch processing; anthropic 2.10.0. A batch has no name and no metadata: which of several it is
tell only the custom ids in its results.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Final

from pii_bench.models.anthropic_messages import (
    PROVIDER,
    judge,
    read_completion,
    request_body,
    version_headers,
)
from pii_bench.models.base import CallError
from pii_bench.models.batch.base import (
    LIMITS,
    RESULTS_GONE,
    Absence,
    BatchState,
    UnknownJobError,
    absent_from_results,
    attempt,
    batched,
    content_of,
    custom_id,
    read_results,
)
from pii_bench.models.transport import parse_json

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Mapping, Sequence

    import anthropic
    import httpx2

    from pii_bench.models.base import Request
    from pii_bench.models.batch.base import BatchLimits, Outcome

_PATH: Final = "/v1/messages/batches"
_PAGE: Final = 100
# Our clock and the provider's may differ by so many seconds.
_CLOCKS: Final = 3600.0
# The custom id and the keys around a request.
_OVERHEAD: Final = 200


class AnthropicBatchService:
    """Batches for one model of Anthropic (`BatchService`).

    Args:
        client: see `anthropic_messages.open_client`; who made it closes it.
        model: its name as the API knows it.
    """

    def __init__(self, client: anthropic.AsyncAnthropic, model: str) -> None:
        self._client, self._model = client, model

    @property
    def limits(self) -> BatchLimits:
        """Half of what the API allows (100,000 requests, 256 MB), and less."""
        return LIMITS

    def size(self, request: Request) -> int:
        """The bytes of its parameters, and of the keys around them."""
        return len(json.dumps(request_body(self._model, request))) + _OVERHEAD

    async def submit(self, requests: Sequence[Request], tag: str) -> str:
        """Create a batch; see `BatchService`."""
        import httpx2

        items = [
            {"custom_id": custom_id(tag, number), "params": request_body(self._model, request)}
            for number, request in enumerate(requests)
        ]
        response = await self._send(
            self._client.post(
                _PATH,
                cast_to=httpx2.Response,
                content=json.dumps({"requests": items}).encode(),
                options={"headers": version_headers(requests[0].sampling.temperature)},
            )
        )
        match self._read(response):
            case {"id": str() as job}:
                return job
        raise CallError("bad_response", "a batch without an id")

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
        response = await self._get(f"{_PATH}/{job}")
        if response.status_code == 404:
            raise UnknownJobError(PROVIDER, job)
        return _state(self._read(response))

    async def results(self, job: str) -> AsyncGenerator[tuple[str, Outcome], None]:
        """Read a batch's results; see `BatchService`."""
        for name, line in read_results(await self._results(job)):
            yield name, batched(_outcome(line.get("result"), self._model))

    async def _created_since(self, moment: float) -> AsyncIterator[tuple[str, BatchState]]:
        # The newest come first.
        query: dict[str, object] = {"limit": _PAGE}
        while True:
            match self._read(await self._get(_PATH, query)):
                case {"data": list() as jobs, "has_more": bool() as more}:
                    pass
                case _:
                    raise CallError("bad_response", "no list of batches")
            for job in jobs:
                if _created(job) < moment:
                    return
                query["after_id"] = job["id"]
                # The results of an archived one are gone: it cannot be told from another.
                if job.get("archived_at") is None:
                    yield job["id"], _state(job)
            if not more or not jobs:
                return

    async def _first_custom_id(self, job: str) -> str:
        for name, _ in read_results(await self._results(job)):
            return name
        return ""

    async def _results(self, job: str) -> bytes:
        # Not by the batch's `results_url`: the key goes to no address that an answer names.
        response = await self._get(f"{_PATH}/{job}/results")
        if response.status_code == 404:
            raise CallError(RESULTS_GONE)
        return content_of(response, self._judge)

    async def _get(self, path: str, query: Mapping[str, object] | None = None) -> httpx2.Response:
        import httpx2

        return await self._send(
            self._client.get(path, cast_to=httpx2.Response, options={"params": dict(query or {})})
        )

    async def _send(self, call: Awaitable[httpx2.Response]) -> httpx2.Response:
        import anthropic

        # What the SDK raises holds the request, with its key and its texts: no `__context__`
        # may keep it alive.
        try:
            return await call
        except anthropic.APIStatusError as error:
            return error.response
        except anthropic.APITimeoutError:
            failure = CallError("timeout")
        except anthropic.APIConnectionError:
            failure = CallError("connection")
        raise failure

    def _read(self, response: httpx2.Response) -> object:
        return parse_json(content_of(response, self._judge))

    def _judge(self, status: int, body: object, wait: float | None) -> Outcome:
        return judge(status, body, model=self._model, wait=wait)


def _state(job: object) -> BatchState:
    match job:
        case {"processing_status": str() as status, "request_counts": dict() as counts}:
            pass
        case _:
            raise CallError("bad_response", "a batch without a status")
    total = sum(count for count in counts.values() if isinstance(count, int))
    running = counts.get("processing")
    return BatchState(
        ended=status == "ended",
        finished=total - (running if isinstance(running, int) else 0),
        total=total,
        absent=absent_from_results(),
    )


def _created(job: object) -> float:
    match job:
        case {"id": str(), "created_at": str() as moment}:
            pass
        case _:
            raise CallError("bad_response", "a batch without a date")
    try:
        return datetime.fromisoformat(moment).timestamp()
    except ValueError:
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
