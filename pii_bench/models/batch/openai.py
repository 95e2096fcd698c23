"""Batches of OpenAI's Chat Completions.

Sources: the API's reference (platform.openai.com/docs/api-reference: files, batch) and its
guide to batches; openai 3.51.0.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from pii_bench.models.base import CallError
from pii_bench.models.batch.base import (
    CHAT_COMPLETIONS,
    LIMITS,
    RESULTS_GONE,
    TAG_KEY,
    Absence,
    BatchState,
    UnknownJobError,
    absent_from_results,
    attempt,
    batched,
    content_of,
    custom_id,
    id_of,
    read_results,
)
from pii_bench.models.openai_compatible import judge, read_completion, request_body
from pii_bench.models.transport import parse_json, refusal, safe_code

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Mapping, Sequence

    import httpx2
    import openai

    from pii_bench.errors import ProviderRefusedError
    from pii_bench.models.base import Request
    from pii_bench.models.batch.base import BatchLimits, Outcome

PROVIDER: Final = "openai"

_UNKNOWN: Final = 404
_PAGE: Final = 100

_ENDED: Final = frozenset({"completed", "failed", "expired", "cancelled"})
_ABSENT: Final[Mapping[str, str]] = {"expired": "expired", "cancelled": "cancelled"}
_ITEM_CODES: Final[Mapping[str, str]] = {
    "batch_expired": "expired",
    "batch_cancelled": "cancelled",
}

_TOO_MUCH: Final = "token_limit_exceeded"
_TOO_MUCH_REMEDY: Final = (
    "more tokens than the account may have queued: run again when its other batches have ended, "
    "or with a lower --limit"
)
_FAILED_REMEDY: Final = "the provider's list of batches says why"


class OpenAIBatchService:
    """Batches for one model of OpenAI (`BatchService`).

    Args:
        client: see `openai_compatible.open_client`; who made it closes it.
        model: its name as the server knows it.
    """

    def __init__(self, client: openai.AsyncOpenAI, model: str) -> None:
        self._client, self._model = client, model
        self._endpoint = str(client.base_url)

    @property
    def limits(self) -> BatchLimits:
        """A tenth of what the API allows (50,000 requests, 200 MB), and less."""
        return LIMITS

    def size(self, request: Request) -> int:
        """The bytes of its line, whatever its custom id."""
        return len(self._line("x" * 64, request))

    async def submit(self, requests: Sequence[Request], tag: str) -> str:
        """Upload the requests as a file and create a batch of it; see `BatchService`."""
        import httpx2

        lines = [self._line(custom_id(tag, number), each) for number, each in enumerate(requests)]
        upload = await self._send(
            self._client.post(
                "/files",
                cast_to=httpx2.Response,
                body={"purpose": "batch"},
                files=[("file", (f"{tag}.jsonl", b"".join(lines)))],
                options={"headers": {"Content-Type": "multipart/form-data"}},
            )
        )
        create = {
            "input_file_id": id_of(self._read(upload)),
            "endpoint": CHAT_COMPLETIONS,
            "completion_window": "24h",
            "metadata": {TAG_KEY: tag},
        }
        created = await self._send(
            self._client.post("/batches", cast_to=httpx2.Response, body=create)
        )
        return id_of(self._read(created))

    async def find(self, tag: str, *, since: float, requests: int) -> str | Absence:  # noqa: ARG002 - of the protocol
        """Look for the tag in the metadata of all batches; see `BatchService`."""
        async for job in self._jobs():
            match job:
                case {"id": str() as name, "metadata": dict() as metadata}:
                    if metadata.get(TAG_KEY) == tag:
                        return name
        return Absence.SURE

    async def poll(self, job: str) -> BatchState:
        """Retrieve a batch; see `BatchService`."""
        return self._state(await self._job(job))

    async def results(self, job: str) -> AsyncGenerator[tuple[str, Outcome], None]:
        """Read the file of answers and the one of errors; see `BatchService`."""
        described = await self._job(job)
        for file in (described.get("output_file_id"), described.get("error_file_id")):
            if isinstance(file, str):
                for name, line in read_results(await self._content(file)):
                    yield name, batched(self._outcome(line))

    def _line(self, name: str, request: Request) -> bytes:
        record = {
            "custom_id": name,
            "method": "POST",
            "url": CHAT_COMPLETIONS,
            "body": request_body(self._model, request, endpoint=self._endpoint),
        }
        return json.dumps(record).encode() + b"\n"

    async def _jobs(self) -> AsyncIterator[object]:
        query: dict[str, object] = {"limit": _PAGE}
        while True:
            match self._read(await self._get("/batches", query)):
                case {"data": list() as jobs, **rest}:
                    pass
                case _:
                    raise CallError("bad_response", "no list of batches")
            for job in jobs:
                yield job
            if not jobs or not rest.get("has_more"):
                return
            query["after"] = id_of(jobs[-1])

    async def _job(self, job: str) -> dict[str, Any]:
        response = await self._get(f"/batches/{job}")
        if response.status_code == _UNKNOWN:
            raise UnknownJobError(PROVIDER, job)
        described = self._read(response)
        if not isinstance(described, dict):
            raise CallError("bad_response", "no batch")
        return described

    async def _content(self, file: str) -> bytes:
        response = await self._get(f"/files/{file}/content")
        if response.status_code == _UNKNOWN:
            raise CallError(RESULTS_GONE)
        return content_of(response, self._judge)

    async def _get(self, path: str, query: Mapping[str, object] | None = None) -> httpx2.Response:
        import httpx2

        return await self._send(
            self._client.get(path, cast_to=httpx2.Response, options={"params": dict(query or {})})
        )

    async def _send(self, call: Awaitable[httpx2.Response]) -> httpx2.Response:
        import openai

        # What the SDK raises holds the request, with its key and its texts: no `__context__`
        # may keep it alive.
        try:
            return await call
        except openai.APIStatusError as error:
            return error.response
        except openai.APITimeoutError:
            failure = CallError("timeout")
        except openai.APIConnectionError:
            failure = CallError("connection")
        raise failure

    def _read(self, response: httpx2.Response) -> object:
        return parse_json(content_of(response, self._judge))

    def _judge(self, status: int, body: object, wait: float | None = None) -> Outcome:
        return judge(status, body, provider=PROVIDER, model=self._model, wait=wait)

    def _state(self, job: dict[str, Any]) -> BatchState:
        match job.get("request_counts"):
            case {"total": int(total), "completed": int(completed), "failed": int(failed)}:
                pass
            case _:
                total = completed = failed = 0
        return BatchState(
            ended=job.get("status") in _ENDED,
            finished=completed + failed,
            total=total,
            absent=self._absent(job),
        )

    def _absent(self, job: dict[str, Any]) -> CallError | ProviderRefusedError:
        status = str(job.get("status"))
        if status != "failed":
            kind = _ABSENT.get(status)
            return absent_from_results() if kind is None else CallError(kind)
        # It was refused whole, before any of its requests was tried.
        match job.get("errors"):
            case {"data": [{"code": found}, *_]}:
                code = safe_code(found)
            case _:
                code = ""
        remedy = _TOO_MUCH_REMEDY if code == _TOO_MUCH else _FAILED_REMEDY
        return refusal(PROVIDER, self._model, f"batch failed {code}".rstrip(), remedy)

    def _outcome(self, line: dict[str, Any]) -> Outcome:
        match line:
            case {"response": {"status_code": 200, "body": body}}:
                return attempt(read_completion, body)
            case {"response": {"status_code": int(status), "body": body}}:
                return self._judge(status, body)
            case {"error": {"code": code}}:
                kind = _ITEM_CODES.get(str(code), "server_error")
                return CallError(kind, safe_code(code))
        return CallError("bad_response", "a result without an answer")
