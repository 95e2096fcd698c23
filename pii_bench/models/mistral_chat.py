"""Models behind Mistral's Chat Completions, and their batches.

Sources: the API's reference (docs.mistral.ai/api), its error glossary, its pages on prompt
caching, reasoning, structured output and batch processing, and mistralai 3.7.0.
"""

from __future__ import annotations

import os
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

import httpx2
from mistralai.client import Mistral
from mistralai.client.errors import MistralError
from mistralai.client.utils.logger import NoOpLogger
from mistralai.extra.observability import TelemetryConfigurationError, configure_telemetry
from opentelemetry.trace import NoOpTracerProvider

from pii_bench.errors import ProviderRefusedError
from pii_bench.models import batch, service
from pii_bench.models.base import CallError, Completion, Finish, Usage
from pii_bench.models.service import ServiceModel

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Iterator, Mapping

    from mistralai.client.types import BaseModel

    from pii_bench.models.base import Outcome, Request

_FINISHES: Final[Mapping[str, Finish]] = {
    "stop": Finish.STOP,
    "length": Finish.LENGTH,
    "model_length": Finish.LENGTH,
}

_REMEDIES: Final[Mapping[int, str]] = {
    **service.REMEDIES,
    # A key whose plan is used up gets the same message as a wrong one.
    401: f"{service.KEY_REMEDY}, and whether its plan has quota left",
    402: "the account has no credit left",
}

_PARAMETER_REMEDIES: Final[Mapping[str, str]] = {
    "temperature": service.NO_TEMPERATURE_REMEDY,
    "response_format": service.NO_SCHEMA_REMEDY,
    "max_tokens": service.MAX_TOKENS_REMEDY,
}
_REFUSED_MESSAGES: Final[Mapping[str, str]] = {
    r"\btemperature\b|greedy sampling": service.NO_TEMPERATURE_REMEDY,
    r"response_format|json_schema|structured output": service.NO_SCHEMA_REMEDY,
}


class MistralModel(ServiceModel[Mistral]):
    """A model of Mistral."""

    errors = (MistralError, httpx2.RequestError, TelemetryConfigurationError)
    _added_path = "/v1"

    def batch_service(self) -> MistralBatchService:
        """Return the batch API, which uses this model's client."""
        return MistralBatchService(self)

    def _connect(self) -> Mistral:
        # Without a `retry_config` the client makes one attempt per call.
        client = Mistral(
            api_key=self._key,
            server_url=self.endpoint,
            async_client=self._http,
            # The default logger writes whole requests where MISTRAL_DEBUG is set.
            debug_logger=NoOpLogger(),
        )
        if os.environ.get("MISTRAL_SDK_TELEMETRY"):
            # The default provider would send requests and answers elsewhere.
            configure_telemetry(client, provider=NoOpTracerProvider())
        return client

    async def call_json(
        self, call: Awaitable[BaseModel], *, missing: Exception | None = None
    ) -> object:
        """Await a call like `call`; return the JSON of the response, None if it is not valid."""
        return await self.call(response_json(call), missing=missing)

    async def _ask(self, request: Request) -> Completion:
        call = self.client.chat.complete_async(**request_body(self.model, request))
        return read_completion(await response_json(call))

    def _read_failure(self, error: Exception) -> Outcome:
        if isinstance(error, MistralError):
            wait, body = service.retry_after(error.headers), service.parse_json(error.body)
            return self.read_error(error.status_code, body, wait)
        if isinstance(error, TelemetryConfigurationError):
            return ProviderRefusedError(f"provider {self.provider!r}: {error}")
        return service.connection_failure(error)

    def read_error(self, status: int, body: object, wait: float | None = None) -> Outcome:
        """Return what an error of the API means for the run, see `ServiceModel`.

        A refusal for a redirect, 401, 402, 403, 404, an unknown model, and a parameter that the
        model does not accept.

        The body is `{"object": "error", "message": ..., "type": ..., "param": ..., "code": ...}`,
        or `{"detail": ...}`; anything else counts as empty.
        """
        error = body if isinstance(body, dict) else {}
        code = service.safe_code(error.get("code"), error.get("type"))
        message = error.get("message")
        message = message.lower() if isinstance(message, str) else ""
        detail = f"HTTP {status} {code}".rstrip()
        remedy = _remedy(status, code, message, error)
        if remedy is not None:
            return self.refusal(detail, remedy, for_now=status == 402)
        overloaded = status in {429, 503} and "capacity exceeded" in message
        failure = "overloaded" if overloaded else service.failure_kind(status)
        return CallError(failure, detail, retry_after=wait)


async def response_json(call: Awaitable[BaseModel]) -> object:
    """Await a call of the SDK, and return the JSON of the response.

    The SDK's types require more than is needed here: where they do not fit, its exception
    contains the response.
    """
    try:
        response = await call
    except MistralError as error:
        if error.status_code != 200:
            raise
        return service.parse_json(error.body)
    # With warnings it would quote what the SDK's types do not allow.
    return response.model_dump(by_alias=True, exclude_unset=True, warnings=False)


def request_body(model: str, request: Request) -> dict[str, Any]:
    """Return the JSON body of a request; a call adds `"stream": false`."""
    body = service.chat_body(model, request)
    if request.sampling.temperature == 0:
        # Models with a lower default of top_p refuse greedy sampling without it.
        body["top_p"] = 1.0
    return body


def read_completion(body: object) -> Completion:
    """Read an answer from a call or a batch.

    The content is a text, or a list of chunks if the model reasons: `thinking` chunks are the
    reasoning, `text` chunks the answer.

    Raises:
        CallError: bad_response: `body` is not an answer; server_error: it is incomplete.
    """
    completion, choice, message = service.first_choice(body)
    reason = choice.get("finish_reason")
    if reason == "error":
        # The servers failed during the answer.
        raise CallError("server_error", "finish_reason error")
    text, reasoning = _read_content(message.get("content"))
    model = completion.get("model")
    return Completion(
        text=text,
        finish=_FINISHES.get(str(reason), Finish.UNKNOWN),
        model=model if isinstance(model, str) else None,
        usage=_read_usage(completion.get("usage")),
        reasoning=reasoning or None,
    )


def _read_content(content: object) -> tuple[str, str]:
    """Return the answer and the reasoning of a message."""
    if content is None:
        return "", ""
    if isinstance(content, str):
        return content, ""
    if not isinstance(content, list):
        raise CallError("bad_response", "content is not text")
    text, reasoning = [], []
    for chunk in content:
        # The SDK wraps a chunk of a type that it does not know into `raw`.
        match chunk["raw"] if isinstance(chunk, dict) and "raw" in chunk else chunk:
            case {"type": "text", "text": str() as part}:
                text.append(part)
            case {"type": "thinking", "thinking": list() as parts}:
                for thought in parts:
                    match thought:
                        case {"text": str() as part}:
                            reasoning.append(part)
            case {"type": "text" | "thinking"}:
                raise CallError("bad_response", "a content chunk without text")
    return "".join(text), "".join(reasoning)


def _read_usage(usage: Any) -> Usage | None:
    match usage:
        case {"prompt_tokens": prompt, "completion_tokens": completion}:
            details = usage.get("prompt_tokens_details")
            cached = details.get("cached_tokens", 0) if isinstance(details, dict) else 0
            return Usage(input_tokens=prompt, output_tokens=completion, cached_tokens=cached)
    return None


def _remedy(status: int, code: str, message: str, error: Mapping[str, Any]) -> str | None:
    if status not in {400, 422}:
        return _REMEDIES.get(status)
    if code in {"invalid_model", "unknown_model"}:
        return _REMEDIES[404]
    for name in _faulty_fields(error):
        if name in _PARAMETER_REMEDIES:
            return _PARAMETER_REMEDIES[name]
    return service.remedy_in(message, _REFUSED_MESSAGES)


def _faulty_fields(error: Mapping[str, Any]) -> Iterator[str]:
    """Yield the fields that an error blames: `param`, or the locations in its details."""
    yield str(error.get("param"))
    message = error.get("message")
    details = (message if isinstance(message, dict) else error).get("detail")
    for item in details if isinstance(details, list) else []:
        match item:
            case {"loc": list() as location}:
                yield from map(str, location)


_PAGE: Final = 100

_ABSENT: Final[Mapping[str, str]] = {
    "FAILED": "batch_failed",
    "TIMEOUT_EXCEEDED": "expired",
    "CANCELLED": "cancelled",
}
"""The error of requests that are missing from the results, by the status of the ended job."""

_ENDED: Final = frozenset({"SUCCESS", *_ABSENT})


class MistralBatchService(batch.FileBatchService[Mistral]):
    """The batch API for one model of Mistral (`BatchService`)."""

    file_keys = ("output_file", "error_file")

    async def poll(self, job: str) -> batch.BatchState:
        """Get a job; see `BatchService`."""
        described = await self._job(job)
        status = str(described.get("status"))
        absent = _ABSENT.get(status)
        return batch.BatchState(
            ended=status in _ENDED,
            finished=batch.count_of(described.get("completed_requests")),
            total=batch.count_of(described.get("total_requests")),
            absent=CallError(absent) if absent else batch.absent_from_results(),
        )

    def _line_fields(self, request: Request) -> dict[str, Any]:
        return {"body": request_body(self._model.model, request)}

    def _upload(self, name: str, content: bytes) -> Awaitable[Any]:
        return self._client.files.upload_async(
            file={"file_name": name, "content": content}, purpose="batch"
        )

    def _create(self, file: str, metadata: dict[str, str]) -> Awaitable[Any]:
        return self._client.batch.jobs.create_async(
            input_files=[file],
            model=self._model.model,
            endpoint=batch.CHAT_COMPLETIONS,
            metadata=metadata,
        )

    def _retrieve(self, job: str) -> Awaitable[Any]:
        return self._client.batch.jobs.get_async(job_id=job)

    async def _jobs(self) -> AsyncIterator[object]:
        page = seen = 0
        while True:
            # Not filtered by metadata: the syntax of such a filter is not documented.
            listed = self._client.batch.jobs.list_async(page=page, page_size=_PAGE)
            match await self._model.call_json(listed):
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

    @asynccontextmanager
    async def _download(self, file: str) -> AsyncIterator[httpx2.Response]:
        missing = CallError(batch.RESULTS_GONE)
        response = await self._model.call(self._open(file), missing=missing)
        async with aclosing(response):
            yield response

    async def _open(self, file: str) -> httpx2.Response:
        try:
            return await self._client.files.download_async(file_id=file)
        except MistralError as error:
            # The SDK refuses a file with an unexpected content type.
            if error.status_code != 200:
                raise
            return httpx2.Response(200, content=error.body.encode())

    def _read_result(self, line: dict[str, Any]) -> Outcome:
        match line:
            case {"response": {"status_code": int(status), "body": body}}:
                # The bodies of errors are strings of JSON.
                body = service.parse_json(body) if isinstance(body, str) else body
                if status == 200:
                    return read_completion(body)
                return self._model.read_error(status, body)
        return CallError("server_error", "an error of the batch")
