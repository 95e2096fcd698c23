"""Models behind Mistral's Chat Completions, and their batches.

Sources: the API's reference (docs.mistral.ai/api), its error glossary, its pages on prompt
caching, reasoning, structured output and batch processing, and mistralai 3.7.0.
"""

from __future__ import annotations

import json
import os
import re
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final, TypeGuard, TypeVar

import httpx2
from mistralai.client import Mistral
from mistralai.client.errors import MistralError
from mistralai.client.utils.logger import NoOpLogger
from mistralai.extra.observability import TelemetryConfigurationError, configure_telemetry
from opentelemetry.trace import NoOpTracerProvider

from pii_bench.errors import ProviderRefusedError
from pii_bench.models.base import CallError, Completion, Finish, Usage
from pii_bench.models.batch import (
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
from pii_bench.models.service import (
    MAX_TOKENS_REMEDY,
    NO_SCHEMA_REMEDY,
    NO_TEMPERATURE_REMEDY,
    REDIRECT_REMEDY,
    ServiceModel,
    attempt,
    connection_failure,
    failure_kind,
    parse_json,
    refusal,
    retry_after,
    safe_code,
    turns,
)

if TYPE_CHECKING:
    from collections.abc import (
        AsyncGenerator,
        AsyncIterator,
        Awaitable,
        Iterator,
        Mapping,
        Sequence,
    )

    from mistralai.client.types import BaseModel

    from pii_bench.models.base import Outcome, Request

T = TypeVar("T")

PROVIDER: Final = "mistral"

_FINISHES: Final[Mapping[str, Finish]] = {
    "stop": Finish.STOP,
    "length": Finish.LENGTH,
    "model_length": Finish.LENGTH,
}

# The servers failed in the middle of the answer; the model did not end it.
_FAILED: Final = "error"

_SUCCESS: Final = 200

_REMEDIES: Final[Mapping[int, str]] = {
    # A key whose plan is used up is refused with the words for a wrong one.
    401: "check the API key, and whether its plan has quota left",
    402: "the account has no credit left",
    403: "the key may not use this model",
    404: "check the model's name and the base URL",
}
_UNKNOWN_MODEL_CODES: Final = frozenset({"invalid_model", "unknown_model"})
_AT_CAPACITY: Final = "capacity exceeded"

_PARAMETER_REMEDIES: Final[Mapping[str, str]] = {
    "temperature": NO_TEMPERATURE_REMEDY,
    "response_format": NO_SCHEMA_REMEDY,
    "max_tokens": MAX_TOKENS_REMEDY,
}
_REFUSED_MESSAGES: Final[tuple[tuple[re.Pattern[str], str], ...]] = (
    (re.compile(r"\btemperature\b|greedy sampling"), NO_TEMPERATURE_REMEDY),
    (re.compile(r"response_format|json_schema|structured output"), NO_SCHEMA_REMEDY),
)


CALL_ERRORS: Final = (MistralError, httpx2.RequestError, TelemetryConfigurationError)
"""What a call may raise."""


class MistralModel(ServiceModel[Mistral]):
    """A model of Mistral."""

    _added_path = "/v1"

    def _connect(self, api_key: str) -> Mistral:
        # It makes one attempt a call where no `retry_config` is given.
        client = Mistral(
            api_key=api_key,
            server_url=self.endpoint,
            async_client=self._http,
            # Another one would write whole requests where MISTRAL_DEBUG is set.
            debug_logger=NoOpLogger(),
        )
        if os.environ.get("MISTRAL_SDK_TELEMETRY"):
            # It would send elsewhere what was asked and answered.
            configure_telemetry(client, provider=NoOpTracerProvider())
        return client

    async def _ask(self, request: Request) -> Outcome:
        try:
            answer = await self.client.chat.complete_async(**request_body(self.model, request))
            body = as_json(answer)
        except CALL_ERRORS as error:
            if not is_answer(error):
                return read_failure(error, model=self.model)
            body = parse_json(error.body)
        return read_completion(body)


def request_body(model: str, request: Request) -> dict[str, Any]:
    """The JSON body of a request; a call adds `"stream": false`.

    The system prompt is a message of its own role.
    """
    body: dict[str, Any] = {
        "model": model,
        "messages": turns(request),
        "max_tokens": request.sampling.max_tokens,
    }
    if request.sampling.temperature is not None:
        body["temperature"] = request.sampling.temperature
    if request.sampling.temperature == 0:
        # Models whose own top_p is lower refuse greedy sampling without it.
        body["top_p"] = 1.0
    if request.schema is not None:
        form = {"name": request.schema.name, "schema": dict(request.schema.schema), "strict": True}
        body["response_format"] = {"type": "json_schema", "json_schema": form}
    return body


def read_completion(body: object) -> Completion:
    """Read an answer, as a call or a batch brings it.

    The content is a text, or a list of chunks where the model reasons: `thinking` chunks are
    the reasoning, `text` chunks the answer.

    Raises:
        CallError: bad_response: `body` is no answer; server_error: it broke off.
    """
    match body:
        case {"choices": [{"message": dict() as message, **choice}, *_], **answer}:
            pass
        case None:
            raise CallError("bad_response", "not JSON")
        case _:
            raise CallError("bad_response", "no choices")
    reason = choice.get("finish_reason")
    if reason == _FAILED:
        raise CallError("server_error", "finish_reason error")
    text, reasoning = _split(message.get("content"))
    model = answer.get("model")
    return Completion(
        text=text,
        finish=_FINISHES.get(str(reason), Finish.UNKNOWN),
        model=model if isinstance(model, str) else None,
        usage=_usage(answer.get("usage")),
        reasoning=reasoning or None,
    )


def _split(content: object) -> tuple[str, str]:
    """The answer and the reasoning of a message."""
    match content:
        case None:
            return "", ""
        case str():
            return content, ""
        case list():
            pass
        case _:
            raise CallError("bad_response", "content is not text")
    text, reasoning = [], []
    for chunk in content:
        match _unwrapped(chunk):
            case {"type": "text", "text": str() as part}:
                text.append(part)
            case {"type": "thinking", "thinking": list() as parts}:
                reasoning += [part["text"] for part in parts if _is_text(part)]
            case {"type": "text" | "thinking"}:
                raise CallError("bad_response", "a content chunk without text")
    return "".join(text), "".join(reasoning)


def _unwrapped(chunk: object) -> object:
    """A chunk as it came: the SDK puts one that is outside of its types into `raw`."""
    return chunk["raw"] if isinstance(chunk, dict) and "raw" in chunk else chunk


def _is_text(chunk: object) -> bool:
    return isinstance(chunk, dict) and isinstance(chunk.get("text"), str)


def _usage(usage: Any) -> Usage | None:
    match usage:
        case {"prompt_tokens": prompt, "completion_tokens": completion, **rest}:
            pass
        case _:
            return None
    match rest.get("prompt_tokens_details"):
        case {"cached_tokens": cached}:
            pass
        case _:
            cached = 0
    return Usage(input_tokens=prompt, output_tokens=completion, cached_tokens=cached)


def as_json(answer: BaseModel) -> object:
    """What the SDK read, as the JSON that it came from."""
    # With warnings it would quote what the SDK's types do not foresee.
    return answer.model_dump(by_alias=True, exclude_unset=True, warnings=False)


def is_answer(error: Exception) -> TypeGuard[MistralError]:
    """Whether an exception holds an answer: the SDK's types ask for more than it needs."""
    return isinstance(error, MistralError) and error.status_code == _SUCCESS


def read_failure(error: Exception, *, model: str) -> Outcome:
    """Say what an exception of a call means for the run.

    It holds the whole request: what is returned must be raised outside of its handler.

    Args:
        error: one of `CALL_ERRORS`.
        model: what was asked for.
    """
    match error:
        case MistralError():
            wait = retry_after(error.headers)
            return judge(error.status_code, parse_json(error.body), model=model, wait=wait)
        case TelemetryConfigurationError():
            return ProviderRefusedError(f"provider {PROVIDER!r}: {error}")
    return connection_failure(error)


def judge(
    status: int, body: object, *, model: str, wait: float | None = None
) -> CallError | ProviderRefusedError:
    """Say what an error of the API means for the run.

    Args:
        status: of the answer.
        body: `{"object": "error", "message": ..., "type": ..., "param": ..., "code": ...}`,
            or `{"detail": ...}`; anything else says nothing.
        model: what was asked for.
        wait: seconds that the server asks to wait.

    Returns:
        A refusal for a redirect, 401, 402, 403, 404, an unknown model, and a parameter that
        the model does not take. For the rest the failure of this call.
    """
    error = body if isinstance(body, dict) else {}
    code, message = safe_code(error.get("code"), error.get("type")), error.get("message")
    said = message.lower() if isinstance(message, str) else ""
    detail = f"HTTP {status} {code}".rstrip()
    remedy = REDIRECT_REMEDY if 300 <= status < 400 else _REMEDIES.get(status)
    if status in {400, 422}:
        remedy = _REMEDIES[404] if code in _UNKNOWN_MODEL_CODES else _parameter_remedy(error, said)
    if remedy is not None:
        return refusal(PROVIDER, model, detail, remedy)
    return CallError(_kind(status, said), detail, retry_after=wait)


def _parameter_remedy(error: Mapping[str, Any], said: str) -> str | None:
    named = (_PARAMETER_REMEDIES.get(str(name)) for name in _names(error))
    matched = (remedy for pattern, remedy in _REFUSED_MESSAGES if pattern.search(said))
    return next((remedy for remedy in named if remedy), next(matched, None))


def _names(error: Mapping[str, Any]) -> Iterator[object]:
    """What an error names as its cause: `param`, or the places of a validation's details."""
    yield error.get("param")
    message = error.get("message")
    details = (message if isinstance(message, dict) else error).get("detail")
    for item in details if isinstance(details, list) else []:
        match item:
            case {"loc": list() as place}:
                yield from place


def _kind(status: int, said: str) -> str:
    if status == _SUCCESS:
        return "bad_response"
    if status in {429, 503} and _AT_CAPACITY in said:
        return "overloaded"
    return failure_kind(status)


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

    # Less than the API allows (1,000,000 requests, files of 512 MB).
    limits = LIMITS

    def __init__(self, model: MistralModel) -> None:
        self._client, self._model = model.client, model.model

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
