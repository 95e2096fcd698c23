"""Batches of Mistral's Chat Completions.

Sources: the API's reference (docs.mistral.ai/api: files, batch) and its guide to batch
processing; mistralai 3.7.0.
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
    custom_id,
    id_of,
    read_results,
)
from pii_bench.models.mistral_chat import (
    PROVIDER,
    judge,
    read_completion,
    read_failure,
    request_body,
)
from pii_bench.models.transport import parse_json

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Mapping, Sequence

    from mistralai.client import Mistral
    from mistralai.client.types import BaseModel

    from pii_bench.models.base import Request
    from pii_bench.models.batch.base import BatchLimits, Outcome

_SUCCESS: Final = 200
_UNKNOWN: Final = 404
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
        client: see `mistral_chat.open_client`.
        model: its name as the API knows it.
    """

    def __init__(self, client: Mistral, model: str) -> None:
        self._client, self._model = client, model

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
        upload = await self._ask(
            self._client.files.upload_async(
                file={"file_name": f"{tag}.jsonl", "content": content}, purpose="batch"
            )
        )
        job = await self._ask(
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
        async for job in self._jobs():
            match job:
                case {"metadata": dict() as metadata} if metadata.get(TAG_KEY) == tag:
                    return id_of(job)
        return Absence.SURE

    async def poll(self, job: str) -> BatchState:
        """Get a job; see `BatchService`."""
        described = await self._job(job)
        status = described.get("status")
        kind = _ABSENT.get(str(status))
        return BatchState(
            ended=status in _ENDED,
            finished=_count(described, "completed_requests"),
            total=_count(described, "total_requests"),
            absent=absent_from_results() if kind is None else CallError(kind),
        )

    async def results(self, job: str) -> AsyncGenerator[tuple[str, Outcome], None]:
        """Read the file of answers and the one of errors; see `BatchService`."""
        described = await self._job(job)
        for file in (described.get("output_file"), described.get("error_file")):
            if isinstance(file, str):
                for name, line in read_results(await self._content(file)):
                    yield name, batched(_outcome(line, self._model))

    def _line(self, name: str, request: Request) -> bytes:
        record = {"custom_id": name, "body": request_body(self._model, request)}
        return json.dumps(record).encode() + b"\n"

    async def _jobs(self) -> AsyncIterator[object]:
        page = seen = 0
        while True:
            # Not filtered by metadata: how such a filter is written is documented nowhere.
            answer = await self._ask(self._client.batch.jobs.list_async(page=page, page_size=_PAGE))
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
        described = await self._ask(
            self._client.batch.jobs.get_async(job_id=job), unknown=UnknownJobError(PROVIDER, job)
        )
        if not isinstance(described, dict):
            raise CallError("bad_response", "no batch")
        return described

    async def _content(self, file: str) -> bytes:
        import httpx2
        from mistralai.client.errors import MistralError

        try:
            response = await self._client.files.download_async(file_id=file)
            return await response.aread()
        except MistralError as error:
            if error.status_code == _SUCCESS:
                # The SDK asks for one content type.
                return error.body.encode()
            failure = read_failure(error, model=self._model)
            if error.status_code == _UNKNOWN:
                failure = CallError(RESULTS_GONE)
        except httpx2.RequestError as error:
            failure = read_failure(error, model=self._model)
        raise failure

    async def _ask(
        self, call: Awaitable[BaseModel], *, unknown: UnknownJobError | None = None
    ) -> object:
        import httpx2
        from mistralai.client.errors import MistralError

        # What is raised holds the request, with its key and its texts: no `__context__` may
        # keep it alive.
        failure: Exception
        try:
            answer = await call
            return answer.model_dump(mode="json", exclude_unset=True, warnings=False)
        except MistralError as error:
            if error.status_code == _SUCCESS:
                # The SDK's types ask for more than is needed.
                return parse_json(error.body)
            failure = read_failure(error, model=self._model)
            if error.status_code == _UNKNOWN and unknown is not None:
                failure = unknown
        except httpx2.RequestError as error:
            failure = read_failure(error, model=self._model)
        raise failure


def _count(described: dict[str, Any], name: str) -> int:
    value = described.get(name)
    return value if isinstance(value, int) else 0


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
