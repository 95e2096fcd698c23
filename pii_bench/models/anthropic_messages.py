"""Models behind Anthropic's Messages API, and its batches.

Sources: the API's reference (platform.claude.com/docs/en/api: messages, errors, versioning,
messages/batches), its guide to batch processing, and anthropic 2.12.0.
"""

from __future__ import annotations

import json
import logging
from contextlib import aclosing
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import anthropic

from pii_bench.models import batch, service
from pii_bench.models.base import CallError, Completion, Finish, Usage, is_count
from pii_bench.models.service import ServiceModel

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence

    from pii_bench.models.base import Outcome, Request

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
_REMEDIES: Final[Mapping[int, str]] = {**service.REMEDIES, 402: _NO_CREDIT_REMEDY}

_CLOSED_REMEDY: Final = "the account is closed or on hold"
_CODE_REMEDIES: Final[Mapping[str, str]] = {
    "enforced_spend_limit_reached": _NO_CREDIT_REMEDY,
    "contract_spend_limit_reached": _NO_CREDIT_REMEDY,
    "organization_on_hold": _CLOSED_REMEDY,
}

# All of these are HTTP 400 `invalid_request_error`: only the messages differ.
_FILTER_MESSAGE: Final = "content filtering policy"
_REFUSED_MESSAGES: Final[Mapping[str, str]] = {
    r"credit balance|(usage|spend|spending) limit": _NO_CREDIT_REMEDY,
    r"organization has been disabled": _CLOSED_REMEDY,
    r"\btemperature\b": service.NO_TEMPERATURE_REMEDY,
    r"\boutput_config\b|\boutput_format\b|structured output": service.NO_SCHEMA_REMEDY,
    r"^max_tokens: ": service.MAX_TOKENS_REMEDY,
}


class AnthropicModel(ServiceModel[anthropic.AsyncAnthropic]):
    """A model of Anthropic."""

    errors = (anthropic.APIError,)
    _added_path = "/v1"

    def batch_service(self) -> AnthropicBatchService:
        """Return the batch API, which uses this model's client."""
        return AnthropicBatchService(self)

    def _connect(self) -> anthropic.AsyncAnthropic:
        # Its DEBUG level, which ANTHROPIC_LOG sets, logs whole requests.
        logging.getLogger("anthropic").setLevel(logging.WARNING)
        return anthropic.AsyncAnthropic(
            api_key=self._key,
            base_url=self.endpoint,
            timeout=self._http.timeout,
            # `calls` retries, within the pace and the budget.
            max_retries=0,
            # With ANTHROPIC_OPEN_TELEMETRY_TRACES_CONTENT_MODE, spans may contain the texts.
            open_telemetry=False,
            http_client=self._http,
        )

    async def _ask(self, request: Request) -> Completion:
        body = request_body(self.model, request)
        # The method has no `temperature`: the newest version of the API refuses it.
        extra = {"temperature": body.pop("temperature")} if "temperature" in body else {}
        # Raw, because the SDK's types turn `true` and `"7"` into counts.
        response = await self.client.messages.with_raw_response.create(
            **body, extra_body=extra, extra_headers=version_headers(request.sampling.temperature)
        )
        return read_completion(service.parse_json(response.http_response.content))

    def _read_failure(self, error: Exception) -> Outcome:
        if isinstance(error, anthropic.APIStatusError):
            wait = service.retry_after(error.response.headers)
            return self.read_error(error.status_code, error.body, wait)
        return service.connection_failure(error.__cause__)

    def read_error(self, status: int | None, body: object, wait: float | None = None) -> Outcome:
        """Return what an error of the API means for the run, see `ServiceModel`.

        A completion if a filter stopped the answer. A refusal for a redirect, 401, 402, 403, 404,
        an account without credit, and a parameter that the model does not accept.

        The body is `{"type": "error", "error": {"type": ..., "message": ...}}`; anything else
        counts as empty. An item of a batch has no status.
        """
        error = body.get("error") if isinstance(body, dict) else None
        error = error if isinstance(error, dict) else {}
        kind, message = service.safe_code(error.get("type")), str(error.get("message", "")).lower()
        detail = f"HTTP {status} {kind}".rstrip() if status is not None else kind
        status = _STATUSES.get(kind, 500) if status is None else status
        if status == 400 and _FILTER_MESSAGE in message:
            return Completion(text="", finish=Finish.FILTER)
        remedy = _remedy(status, message, error.get("details"))
        if remedy is not None:
            return self.refusal(detail, remedy, for_now=remedy == _NO_CREDIT_REMEDY)
        overloaded = status == 529 or kind == "overloaded_error"
        failure = "overloaded" if overloaded else service.failure_kind(status)
        return CallError(failure, detail, retry_after=wait)


def version_headers(temperature: float | None) -> dict[str, str]:
    """Return the header that selects the API version of a request."""
    return {"anthropic-version": _VERSION if temperature is None else _SAMPLED_VERSION}


def request_body(model: str, request: Request) -> dict[str, Any]:
    """Return the JSON body of a request, which must be sent with `version_headers`.

    The system prompt is separate from the messages, and `max_tokens` is required. A schema goes
    into `output_config` (structured outputs), without its name.
    """
    messages = service.encode_messages(request)
    body: dict[str, Any] = {
        "model": model,
        "max_tokens": request.sampling.max_tokens,
        "messages": [message for message in messages if message["role"] != "system"],
    }
    system = "\n\n".join(message["content"] for message in messages if message["role"] == "system")
    if system:
        body["system"] = system
    if request.sampling.temperature is not None:
        body["temperature"] = request.sampling.temperature
    if request.schema is not None:
        schema = dict(request.schema.schema)
        body["output_config"] = {"format": {"type": "json_schema", "schema": schema}}
    return body


def read_completion(body: object) -> Completion:
    """Read a message from a call or a batch.

    `thinking` blocks are the reasoning; the encrypted `redacted_thinking` is left out.

    Raises:
        CallError: bad_response: `body` is not a message.
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
        usage=_read_usage(message.get("usage")),
        reasoning="\n\n".join(part for part in reasoning if part) or None,
    )


def _read_usage(usage: Any) -> Usage | None:
    if not isinstance(usage, dict) or not {"input_tokens", "output_tokens"} <= usage.keys():
        return None
    cached = usage.get("cache_read_input_tokens") or 0
    # The API's `input_tokens` excludes what was read from a cache or written to one.
    parts = [usage["input_tokens"], cached, usage.get("cache_creation_input_tokens") or 0]
    if not all(map(is_count, parts)):
        return None
    details = usage.get("output_tokens_details")
    return Usage(
        input_tokens=sum(parts),
        output_tokens=usage["output_tokens"],
        reasoning_tokens=details.get("thinking_tokens", 0) if isinstance(details, dict) else 0,
        cached_tokens=cached,
    )


def _remedy(status: int, message: str, details: object) -> str | None:
    code = service.safe_code(details.get("error_code")) if isinstance(details, dict) else ""
    if code in _CODE_REMEDIES:
        return _CODE_REMEDIES[code]
    if status != 400:
        return _REMEDIES.get(status)
    return service.remedy_in(message, _REFUSED_MESSAGES)


_PAGE: Final = 100
# How many seconds the provider's clock may differ from ours.
_CLOCK_SKEW: Final = 3600.0
# Bytes of the custom id and the keys around a request.
_OVERHEAD: Final = 200


class AnthropicBatchService:
    """The batch API for one model of Anthropic (`BatchService`)."""

    # The API allows 100,000 requests and 256 MB.
    limits = batch.LIMITS

    def __init__(self, model: AnthropicModel) -> None:
        self._model, self._client = model, model.client
        self._batches = model.client.messages.batches.with_raw_response

    def size(self, request: Request) -> int:
        """Return the bytes of a request's parameters and the keys around them."""
        return len(json.dumps(request_body(self._model.model, request))) + _OVERHEAD

    async def submit(self, requests: Sequence[Request], tag: str) -> str:
        """Create a batch; see `BatchService`."""
        items: list[Any] = [
            {
                "custom_id": batch.custom_id(tag, number),
                "params": request_body(self._model.model, request),
            }
            for number, request in enumerate(requests)
        ]
        headers = version_headers(requests[0].sampling.temperature)
        created = self._batches.create(requests=items, extra_headers=headers)
        return batch.id_of(await self._model.call_json(created))

    async def find(self, tag: str, *, since: float, requests: int) -> str | batch.Absence:
        """Search the results of batches of that time and size; see `BatchService`."""
        absence = batch.Absence.SURE
        async for job, state in self._created_since(since - _CLOCK_SKEW):
            if state.total != requests:
                continue
            if not state.ended:
                absence = batch.Absence.UNDECIDED
            elif (await self._first_custom_id(job)).startswith(f"{tag}-"):
                return job
        return absence

    async def poll(self, job: str) -> batch.BatchState:
        """Retrieve a batch; see `BatchService`."""
        missing = batch.UnknownJobError(self._model.provider, job)
        call = self._batches.retrieve(job)
        return _read_state(await self._model.call_json(call, missing=missing))

    async def results(self, job: str) -> AsyncGenerator[tuple[str, Outcome], None]:
        """Read a batch's results; see `BatchService`."""
        async with aclosing(self._lines(job)) as lines:
            async for name, line in lines:
                yield name, batch.batch_outcome(self._read_result, line)

    async def _created_since(self, moment: float) -> AsyncIterator[tuple[str, batch.BatchState]]:
        """Yield the ids and states of batches created since a Unix time, newest first."""
        after: str | anthropic.Omit = anthropic.omit
        while True:
            page = self._batches.list(limit=_PAGE, after_id=after)
            match await self._model.call_json(page):
                case {"data": list() as jobs, "has_more": bool() as more}:
                    pass
                case _:
                    raise CallError("bad_response", "no list of batches")
            for job in jobs:
                if _read_creation(job) < moment:
                    return
                after = job["id"]
                # The results of an archived batch are gone: nothing identifies it.
                if job.get("archived_at") is None:
                    yield job["id"], _read_state(job)
            if not more or not jobs:
                return

    async def _first_custom_id(self, job: str) -> str:
        async with aclosing(self._lines(job)) as lines:
            async for name, _ in lines:
                return name
        return ""

    async def _lines(self, job: str) -> AsyncGenerator[tuple[str, dict[str, Any]], None]:
        # Not `batches.results`: it sends the key to whatever URL the API's response contains.
        call = self._client.get(
            f"/v1/messages/batches/{job}/results",
            cast_to=object,
            stream=True,
            stream_cls=anthropic.AsyncStream[object],
        )
        stream = await self._model.call(call, missing=CallError(batch.RESULTS_GONE))
        async with stream, aclosing(batch.read_results(stream.response)) as lines:
            async for item in lines:
                yield item

    def _read_result(self, line: dict[str, Any]) -> Outcome:
        match line.get("result"):
            case {"type": "succeeded", "message": message}:
                return read_completion(message)
            case {"type": "errored", "error": error}:
                return self._model.read_error(None, error)
            case {"type": "expired"}:
                return CallError("expired")
            case {"type": "canceled"}:
                return CallError("cancelled")
        return CallError("bad_response", "a result of unknown type")


def _read_state(job: object) -> batch.BatchState:
    match job:
        case {"processing_status": str() as status, "request_counts": dict() as counts}:
            pass
        case _:
            raise CallError("bad_response", "a batch without a status")
    total = sum(map(batch.count_of, counts.values()))
    return batch.BatchState(
        ended=status == "ended",
        finished=total - batch.count_of(counts.get("processing")),
        total=total,
        absent=batch.absent_from_results(),
    )


def _read_creation(job: object) -> float:
    """Return the Unix time at which a batch was created."""
    match job:
        case {"id": name, "created_at": str() as moment} if batch.is_id(name):
            try:
                return datetime.fromisoformat(moment).timestamp()
            except (ValueError, OverflowError):
                pass
    raise CallError("bad_response", "a batch without a date")
