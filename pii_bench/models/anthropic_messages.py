"""Models behind Anthropic's Messages API, and its batches.

Sources: the API's reference (platform.claude.com/docs/en/api: messages, errors, versioning,
messages/batches), its guide to batch processing, and anthropic 2.12.0.
"""

from __future__ import annotations

import json
import logging
import re
from contextlib import aclosing
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import anthropic

from pii_bench.models.base import CallError, Completion, Finish, Usage, is_count
from pii_bench.models.batch import (
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
    from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Mapping, Sequence

    from pii_bench.models.base import Outcome, Request

PROVIDER: Final = "anthropic"

_VERSION: Final = "2026-10-21"
_SAMPLED_VERSION: Final = "2023-06-01"
"""The last API version with `temperature`; the next one refuses it for every model."""

_FINISHES: Final[Mapping[str, Finish]] = {
    "end_turn": Finish.STOP,
    "stop_sequence": Finish.STOP,
    "max_tokens": Finish.LENGTH,
    "model_context_window_exceeded": Finish.LENGTH,
    "refusal": Finish.REFUSAL,
}

_STATUSES: Final[Mapping[str, int]] = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "timeout_error": 504,
    "overloaded_error": 529,
}

_NO_CREDIT_REMEDY: Final = "the account has no credit left, or its spend limit is reached"
_REMEDIES: Final[Mapping[int, str]] = {
    401: "check the API key",
    402: _NO_CREDIT_REMEDY,
    403: "the key may not use this model",
    404: "check the model's name and the base URL",
}

_CLOSED_REMEDY: Final = "the account is closed or on hold"
_CODE_REMEDIES: Final[Mapping[str, str]] = {
    "enforced_spend_limit_reached": _NO_CREDIT_REMEDY,
    "contract_spend_limit_reached": _NO_CREDIT_REMEDY,
    "organization_on_hold": _CLOSED_REMEDY,
}

# All of these are HTTP 400 `invalid_request_error`: only the message tells them apart.
_FILTER_MESSAGE: Final = re.compile(r"content filtering policy")
_REFUSED_MESSAGES: Final[tuple[tuple[re.Pattern[str], str], ...]] = (
    (re.compile(r"credit balance|(usage|spend|spending) limit"), _NO_CREDIT_REMEDY),
    (re.compile(r"organization has been disabled"), _CLOSED_REMEDY),
    (re.compile(r"\btemperature\b"), NO_TEMPERATURE_REMEDY),
    (re.compile(r"\boutput_config\b|\boutput_format\b|structured output"), NO_SCHEMA_REMEDY),
    (re.compile(r"^max_tokens: "), MAX_TOKENS_REMEDY),
)


class AnthropicModel(ServiceModel[anthropic.AsyncAnthropic]):
    """A model of Anthropic."""

    _added_path = "/v1"

    def _connect(self, api_key: str) -> anthropic.AsyncAnthropic:
        # Its DEBUG level, which ANTHROPIC_LOG switches on, writes whole requests.
        logging.getLogger("anthropic").setLevel(logging.WARNING)
        return anthropic.AsyncAnthropic(
            api_key=api_key,
            base_url=self.endpoint,
            timeout=self._http.timeout,
            # Attempts are counted, paced and paid for in `calls`.
            max_retries=0,
            # Spans may hold the texts, where ANTHROPIC_OPEN_TELEMETRY_TRACES_CONTENT_MODE says so.
            open_telemetry=False,
            http_client=self._http,
        )

    async def _ask(self, request: Request) -> Outcome:
        body = request_body(self.model, request)
        # The method has no argument for it: the API's newest version refuses it.
        temperature = {key: body.pop(key) for key in ("temperature",) if key in body}
        try:
            # Raw, because the SDK's types turn `true` and `"7"` into counts.
            answer = await self.client.messages.with_raw_response.create(
                **body,
                extra_body=temperature,
                extra_headers=version_headers(request.sampling.temperature),
            )
        except anthropic.APIError as error:
            return read_failure(error, model=self.model)
        return read_completion(parse_json(answer.http_response.content))


def version_headers(temperature: float | None) -> dict[str, str]:
    """The header that says in which version of the API a request is meant."""
    return {"anthropic-version": _VERSION if temperature is None else _SAMPLED_VERSION}


def request_body(model: str, request: Request) -> dict[str, Any]:
    """The JSON body of a request, which must be sent with `version_headers`.

    The system prompt is apart from the messages, and the longest answer must be given. A
    schema goes into `output_config` (structured outputs).
    """
    body: dict[str, Any] = {
        "model": model,
        "max_tokens": request.sampling.max_tokens,
        "messages": [turn for turn in turns(request) if turn["role"] != "system"],
    }
    system = "\n\n".join(turn["content"] for turn in turns(request) if turn["role"] == "system")
    if system:
        body["system"] = system
    if request.sampling.temperature is not None:
        body["temperature"] = request.sampling.temperature
    if request.schema is not None:
        # The API gives a schema no name.
        form = {"type": "json_schema", "schema": dict(request.schema.schema)}
        body["output_config"] = {"format": form}
    return body


def read_completion(body: object) -> Completion:
    """Read a message, as a call or a batch brings it.

    `thinking` blocks are the reasoning; the encrypted `redacted_thinking` is left out.

    Raises:
        CallError: bad_response: `body` is no message.
    """
    match body:
        case {"content": list() as blocks, **message}:
            pass
        case _:
            raise CallError("bad_response", "not JSON" if body is None else "no content")
    text, reasoning = [], []
    for block in blocks:
        match block:
            case {"type": "text", "text": str() as part}:
                text.append(part)
            case {"type": "thinking", "thinking": str() as part}:
                reasoning.append(part)
            case {"type": "text" | "thinking"}:
                raise CallError("bad_response", "a content block without text")
    model = message.get("model")
    return Completion(
        text="".join(text),
        finish=_FINISHES.get(str(message.get("stop_reason")), Finish.UNKNOWN),
        model=model if isinstance(model, str) else None,
        usage=_usage(message.get("usage")),
        reasoning="\n\n".join(part for part in reasoning if part) or None,
    )


def _usage(usage: Any) -> Usage | None:
    match usage:
        case {"input_tokens": fresh, "output_tokens": output, **rest}:
            pass
        case _:
            return None
    cached: Any = rest.get("cache_read_input_tokens") or 0
    # The API's own count leaves out what was read from a cache or written to one.
    parts: list[Any] = [fresh, cached, rest.get("cache_creation_input_tokens") or 0]
    if not all(map(is_count, parts)):
        return None
    match rest.get("output_tokens_details"):
        case {"thinking_tokens": thinking}:
            pass
        case _:
            thinking = 0
    return Usage(
        input_tokens=sum(parts),
        output_tokens=output,
        reasoning_tokens=thinking,
        cached_tokens=cached,
    )


def read_failure(error: anthropic.APIError, *, model: str) -> Outcome:
    """Say what an exception of a call means for the run.

    It holds the whole request: what is returned must be raised outside of its handler.

    Args:
        error: of the SDK.
        model: what was asked for.
    """
    if isinstance(error, anthropic.APIStatusError):
        wait = retry_after(error.response.headers)
        return judge(error.status_code, error.body, model=model, wait=wait)
    return connection_failure(error.__cause__)


def judge(status: int | None, body: object, *, model: str, wait: float | None = None) -> Outcome:
    """Say what an error of the API means for the run.

    Args:
        status: of the answer; None in a batch, whose items have none.
        body: `{"type": "error", "error": {"type": ..., "message": ...}}`; anything else
            says nothing.
        model: what was asked for.
        wait: seconds that the server asks to wait.

    Returns:
        A completion where a filter stopped the answer. A refusal for a redirect, 401, 402,
        403, 404, an account without credit, and a parameter that the model does not take.
        For the rest the failure of this call.
    """
    error = body.get("error") if isinstance(body, dict) else None
    error = error if isinstance(error, dict) else {}
    kind, message = safe_code(error.get("type")), str(error.get("message", "")).lower()
    detail = f"HTTP {status} {kind}".rstrip() if status is not None else kind
    status = _STATUSES.get(kind, 500) if status is None else status
    if status == 400 and _FILTER_MESSAGE.search(message):
        return Completion(text="", finish=Finish.FILTER)
    remedy = _remedy(status, message, error.get("details"))
    if remedy is not None:
        return refusal(PROVIDER, model, detail, remedy)
    return CallError(_kind(status, kind), detail, retry_after=wait)


def _remedy(status: int, message: str, details: object) -> str | None:
    if 300 <= status < 400:
        return REDIRECT_REMEDY
    code = safe_code(details.get("error_code")) if isinstance(details, dict) else ""
    if code in _CODE_REMEDIES:
        return _CODE_REMEDIES[code]
    if status == 400:
        found = (remedy for pattern, remedy in _REFUSED_MESSAGES if pattern.search(message))
        return next(found, None)
    return _REMEDIES.get(status)


def _kind(status: int, error_type: str) -> str:
    if status == 529 or error_type == "overloaded_error":
        return "overloaded"
    return failure_kind(status)


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

    # Half of what the API allows (100,000 requests, 256 MB), and less.
    limits = LIMITS

    def __init__(self, model: AnthropicModel) -> None:
        self._client, self._model = model.client, model.model

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
