"""Batches of OpenAI's Chat Completions.

Sources: the API's reference (platform.openai.com/docs/api-reference: files, batch) and its
guide to batches; openai 3.54.0.
"""

from __future__ import annotations

import json
from contextlib import AsyncExitStack, aclosing
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import openai

from pii_bench.models.base import CallError
from pii_bench.models.batch.base import (
    CHAT_COMPLETIONS,
    LIMITS,
    RESULTS_GONE,
    TAG_KEY,
    Absence,
    BatchState,
    RawAnswer,
    UnknownJobError,
    absent_from_results,
    answer_of,
    batched,
    count_of,
    custom_id,
    find_tagged,
    id_of,
    is_id,
    raised,
    read_results,
)
from pii_bench.models.openai_compatible import (
    CALL_ERRORS,
    judge,
    read_completion,
    read_failure,
    request_body,
)
from pii_bench.models.service import attempt, parse_json, refusal, safe_code

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Mapping, Sequence

    from pii_bench.errors import ProviderRefusedError
    from pii_bench.models.base import Outcome, Request
    from pii_bench.models.batch.base import BatchLimits
    from pii_bench.models.openai_compatible import OpenAICompatibleModel

PROVIDER: Final = "openai"

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
        model: who made it closes it.
    """

    def __init__(self, model: OpenAICompatibleModel) -> None:
        self._client, self._model, self._endpoint = model.client, model.model, model.endpoint

    @property
    def limits(self) -> BatchLimits:
        """A tenth of what the API allows (50,000 requests, 200 MB), and less."""
        return LIMITS

    def size(self, request: Request) -> int:
        """The bytes of its line, whatever its custom id."""
        return len(self._line("x" * 64, request))

    async def submit(self, requests: Sequence[Request], tag: str) -> str:
        """Upload the requests as a file and create a batch of it; see `BatchService`."""
        lines = [self._line(custom_id(tag, number), each) for number, each in enumerate(requests)]
        upload = await self._call(
            self._client.files.with_raw_response.create(
                file=(f"{tag}.jsonl", b"".join(lines)), purpose="batch"
            )
        )
        created = await self._call(
            self._client.batches.with_raw_response.create(
                input_file_id=id_of(upload),
                endpoint=CHAT_COMPLETIONS,
                completion_window="24h",
                metadata={TAG_KEY: tag},
            )
        )
        return id_of(created)

    async def find(self, tag: str, *, since: float, requests: int) -> str | Absence:  # noqa: ARG002 - of the protocol
        """Look for the tag in the metadata of all batches; see `BatchService`."""
        return await find_tagged(self._jobs(), tag)

    async def poll(self, job: str) -> BatchState:
        """Retrieve a batch; see `BatchService`."""
        return self._state(await self._job(job))

    async def results(self, job: str) -> AsyncGenerator[tuple[str, Outcome], None]:
        """Read the file of answers and the one of errors; see `BatchService`."""
        described = await self._job(job)
        for file in (described.get("output_file_id"), described.get("error_file_id")):
            if not is_id(file):
                continue
            content = self._client.files.with_streaming_response.content(file)
            async with AsyncExitStack() as stack:
                opening = stack.enter_async_context(content)
                gone = CallError(RESULTS_GONE)
                answer = await answer_of(opening, CALL_ERRORS, partial(self._failure, gone))
                read = read_results(answer.http_response)
                async for name, line in await stack.enter_async_context(aclosing(read)):
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
        after: str | openai.Omit = openai.omit
        while True:
            match await self._call(
                self._client.batches.with_raw_response.list(limit=_PAGE, after=after)
            ):
                case {"data": list() as jobs, **rest}:
                    pass
                case _:
                    raise CallError("bad_response", "no list of batches")
            for job in jobs:
                yield job
            if not jobs or not rest.get("has_more"):
                return
            after = id_of(jobs[-1])

    async def _job(self, job: str) -> dict[str, Any]:
        described = await self._call(
            self._client.batches.with_raw_response.retrieve(job),
            missing=UnknownJobError(PROVIDER, job),
        )
        if not isinstance(described, dict):
            raise CallError("bad_response", "no batch")
        return described

    async def _call(
        self, call: Awaitable[RawAnswer], *, missing: UnknownJobError | None = None
    ) -> object:
        answer = await answer_of(call, CALL_ERRORS, partial(self._failure, missing))
        return parse_json(answer.http_response.content)

    def _failure(self, missing: Exception | None, error: Exception) -> Exception:
        if missing is not None and isinstance(error, openai.NotFoundError):
            return missing
        return raised(read_failure(error, provider=PROVIDER, model=self._model))

    def _state(self, job: dict[str, Any]) -> BatchState:
        counts = job.get("request_counts")
        counts = counts if isinstance(counts, dict) else {}
        done = [count_of(counts.get(name)) for name in ("completed", "failed")]
        return BatchState(
            ended=str(job.get("status")) in _ENDED,
            finished=sum(done),
            total=count_of(counts.get("total")),
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
                return judge(status, body, provider=PROVIDER, model=self._model)
            case {"error": {"code": code}}:
                kind = _ITEM_CODES.get(str(code), "server_error")
                return CallError(kind, safe_code(code))
        return CallError("bad_response", "a result without an answer")
