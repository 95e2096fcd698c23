"""Batches of Mistral's Chat Completions.

Sources: the API's reference (docs.mistral.ai/api: files, batch) and its guide to batch
processing; mistralai 3.7.0.
"""

from __future__ import annotations

import json
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final, TypeVar

import httpx2
from mistralai.client.errors import MistralError

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
    batched,
    count_of,
    custom_id,
    find_tagged,
    id_of,
    is_id,
    raised,
    read_results,
)
from pii_bench.models.mistral_chat import (
    CALL_ERRORS,
    PROVIDER,
    as_json,
    is_answer,
    judge,
    read_completion,
    read_failure,
    request_body,
)
from pii_bench.models.service import attempt, parse_json

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Mapping, Sequence

    from mistralai.client.types import BaseModel

    from pii_bench.models.base import Outcome, Request
    from pii_bench.models.batch.base import BatchLimits
    from pii_bench.models.mistral_chat import MistralModel

T = TypeVar("T")

_SUCCESS: Final = 200
_PAGE: Final = 100

_ABSENT: Final[Mapping[str, str]] = {
    "FAILED": "batch_failed",
    "TIMEOUT_EXCEEDED": "expired",
    "CANCELLED": "cancelled",
}
"""By the status of a job that has ended, what became of requests that its results do not name."""

_ENDED: Final = frozenset({"SUCCESS", *_ABSENT})


class MistralBatchService:
    """Batches for one model of Mistral (`BatchService`).

    Args:
        model: who made it closes it.
    """

    def __init__(self, model: MistralModel) -> None:
        self._client, self._model = model.client, model.model

    @property
    def limits(self) -> BatchLimits:
        """Less than the API allows (1,000,000 requests, files of 512 MB)."""
        return LIMITS

    def size(self, request: Request) -> int:
        """The bytes of its line, whatever its custom id."""
        return len(self._line("x" * 64, request))

    async def submit(self, requests: Sequence[Request], tag: str) -> str:
        """Upload the requests as a file and create a job for it; see `BatchService`."""
        lines = [self._line(custom_id(tag, number), each) for number, each in enumerate(requests)]
        content = b"".join(lines)
        upload = await self._call(
            self._client.files.upload_async(
                file={"file_name": f"{tag}.jsonl", "content": content}, purpose="batch"
            )
        )
        job = await self._call(
            self._client.batch.jobs.create_async(
                input_files=[id_of(upload)],
                model=self._model,
                endpoint=CHAT_COMPLETIONS,
                metadata={TAG_KEY: tag},
            )
        )
        return id_of(job)

    async def find(self, tag: str, *, since: float, requests: int) -> str | Absence:  # noqa: ARG002 - of the protocol
        """Look for the tag in the metadata of all jobs; see `BatchService`."""
        return await find_tagged(self._jobs(), tag)

    async def poll(self, job: str) -> BatchState:
        """Get a job; see `BatchService`."""
        described = await self._job(job)
        status = str(described.get("status"))
        kind = _ABSENT.get(status)
        return BatchState(
            ended=status in _ENDED,
            finished=count_of(described.get("completed_requests")),
            total=count_of(described.get("total_requests")),
            absent=absent_from_results() if kind is None else CallError(kind),
        )

    async def results(self, job: str) -> AsyncGenerator[tuple[str, Outcome], None]:
        """Read the file of answers and the one of errors; see `BatchService`."""
        described = await self._job(job)
        for file in (described.get("output_file"), described.get("error_file")):
            if not is_id(file):
                continue
            call = self._client.files.download_async(file_id=file)
            response = await self._answer(call, missing=CallError(RESULTS_GONE))
            async with aclosing(response), aclosing(read_results(response)) as lines:
                async for name, line in lines:
                    yield name, batched(_outcome(line, self._model))

    def _line(self, name: str, request: Request) -> bytes:
        record = {"custom_id": name, "body": request_body(self._model, request)}
        return json.dumps(record).encode() + b"\n"

    async def _jobs(self) -> AsyncIterator[object]:
        page = seen = 0
        while True:
            # Not filtered by metadata: how such a filter is written is documented nowhere.
            answer = await self._call(
                self._client.batch.jobs.list_async(page=page, page_size=_PAGE)
            )
            match answer:
                case {"data": list() as jobs, "total": int(total)}:
                    pass
                case {"total": 0}:
                    return
                case _:
                    raise CallError("bad_response", "no list of batches")
            for job in jobs:
                yield job
            page, seen = page + 1, seen + len(jobs)
            if not jobs or seen >= total:
                return

    async def _job(self, job: str) -> dict[str, Any]:
        described = await self._call(
            self._client.batch.jobs.get_async(job_id=job), missing=UnknownJobError(PROVIDER, job)
        )
        if not isinstance(described, dict):
            raise CallError("bad_response", "no batch")
        return described

    async def _call(
        self, call: Awaitable[BaseModel], *, missing: UnknownJobError | None = None
    ) -> object:
        answer = await self._answer(call, missing=missing)
        return (
            parse_json(answer.content) if isinstance(answer, httpx2.Response) else as_json(answer)
        )

    async def _answer(
        self, call: Awaitable[T], *, missing: Exception | None
    ) -> T | httpx2.Response:
        """What the SDK made of an answer, or the answer where it could make nothing of it."""
        # What is raised holds the request, with its key and its texts: no `__context__` may
        # keep it alive.
        try:
            return await call
        except CALL_ERRORS as error:
            if is_answer(error):
                return httpx2.Response(_SUCCESS, content=error.body.encode())
            if missing is not None and isinstance(error, MistralError) and error.status_code == 404:
                failure = missing
            else:
                failure = raised(read_failure(error, model=self._model))
        raise failure


def _outcome(line: dict[str, Any], model: str) -> Outcome:
    match line:
        case {"response": {"status_code": int(status), "body": body}}:
            # Bodies of errors come as text.
            body = parse_json(body) if isinstance(body, str) else body
        case _:
            return CallError("server_error", "an error of the batch")
    if status != _SUCCESS:
        return judge(status, body, model=model)
    return attempt(read_completion, body)
