"""Models behind the Chat Completions protocol: OpenAI, DeepSeek, vLLM, llama.cpp, Ollama.

Also the batches of OpenAI, the only one of them that has any.

Sources: OpenAI's API reference and its guides on errors, structured outputs and batches,
api-docs.deepseek.com (create-chat-completion, guides/json_mode, quick_start/error_codes),
docs.vllm.ai (features: reasoning_outputs, structured_outputs) and openai 3.54.0.
"""

from __future__ import annotations

import re
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import aiohttp
import httpx2
import openai

from pii_bench.models import batch, service
from pii_bench.models.base import CallError, Completion, Finish, Usage, is_count
from pii_bench.models.service import EndpointClient, ServiceModel

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Mapping

    from pii_bench.errors import ProviderRefusedError
    from pii_bench.models.base import Outcome, Request

_OPENAI: Final = "api.openai.com"
_DEEPSEEK: Final = "api.deepseek.com"

_FINISHES: Final[Mapping[str, Finish]] = {
    "stop": Finish.STOP,
    "length": Finish.LENGTH,
    "content_filter": Finish.FILTER,
}

_FILTER_CODES: Final = frozenset({"content_filter", "content_policy_violation"})
# These have the code of any other bad request, so that only the message identifies them:
# DeepSeek's filter, unknown model and too long prompt, and OpenAI's filter of prompts.
_FILTER_MESSAGE: Final = re.compile(r"content exists risk|(prompt|input) was flagged")
_UNKNOWN_MODEL_MESSAGE: Final = "model not exist"
_TOO_LONG_MESSAGE: Final = "maximum context length"
_TOO_LONG: Final = "context_length_exceeded"

_NO_CREDIT_REMEDY: Final = "the account has no credit or quota left, or its limit is reached"
_REMEDIES: Final[Mapping[int, str]] = {
    **service.REMEDIES,
    402: _NO_CREDIT_REMEDY,
    405: service.NO_MODEL_REMEDY,
}

_NO_CREDIT_CODES: Final = frozenset(
    {
        "billing_hard_limit_reached",
        "billing_not_active",
        "credit_balance_exhausted",
        "insufficient_quota",
        "organization_spend_limit_exceeded",
        "organization_usage_limit_exceeded",
        "project_spend_limit_exceeded",
    }
)

# Parameters that are the same in every request of a run: refused once, always refused.
_SETTINGS: Final[Mapping[str, str]] = {
    "temperature": service.NO_TEMPERATURE_REMEDY,
    "max_tokens": service.MAX_TOKENS_REMEDY,
    "max_completion_tokens": service.MAX_TOKENS_REMEDY,
    "response_format": service.NO_SCHEMA_REMEDY,
}
_OTHER_LIMIT_REMEDY: Final = (
    "it takes no `max_tokens`, and only OpenAI's own endpoint is sent `max_completion_tokens`"
)
# Some gateways drop `param`: then only the message names the parameter.
_UNSUPPORTED_MESSAGE: Final = re.compile(
    r"\b(?:unsupported|not support(?:ed)?|unavailable|only (?:the default )?\(?1\b)"
)


class _AioHttpEndpointClient(EndpointClient, openai.DefaultAioHttpClient):
    """`EndpointClient` over aiohttp, from `openai[aiohttp]`.

    1,000 calls, 200 at a time, took 1.6 s of CPU with it and 2.6 s without (openai 3.54.0).
    """


class OpenAICompatibleModel(ServiceModel[openai.AsyncOpenAI]):
    """A model of any server that speaks Chat Completions.

    Organization, project and headers from the SDK's own variables (OPENAI_ORG_ID,
    OPENAI_PROJECT_ID, OPENAI_CUSTOM_HEADERS) are sent to OpenAI and to no other endpoint.
    """

    # The SDK does not wrap all errors of aiohttp.
    errors = (openai.APIError, aiohttp.ClientError)

    def batch_service(self) -> OpenAIBatchService | None:
        """Return OpenAI's batch API, which uses this model's client; None for other providers."""
        return OpenAIBatchService(self) if self.provider == "openai" else None

    def _open(self) -> EndpointClient:
        key = None if _is_host(self.endpoint, _OPENAI) else self._key
        return _AioHttpEndpointClient(self.endpoint, self._timeout, key)

    def _connect(self) -> openai.AsyncOpenAI:
        return openai.AsyncOpenAI(
            api_key=self._key,
            base_url=self.endpoint,
            timeout=self._http.timeout,
            # `calls` retries, within the pace and the budget.
            max_retries=0,
            http_client=self._http,
        )

    async def _ask(self, request: Request) -> Outcome:
        body = request_body(self.model, request, endpoint=self.endpoint)
        # Raw, because the SDK's types turn `true` and `"7"` into counts.
        response = await self.client.chat.completions.with_raw_response.create(**body)
        answer = service.parse_json(response.http_response.content)
        status = _status_inside(answer)
        if status is None:
            return read_completion(answer)
        return self.read_error(status, answer, service.retry_after(response.headers))

    def _read_failure(self, error: Exception) -> Outcome:
        if isinstance(error, openai.APIStatusError):
            wait = service.retry_after(error.response.headers)
            return self.read_error(error.status_code, error.body, wait)
        wrapped = isinstance(error, openai.APIConnectionError)
        cause = error.__cause__ if wrapped else error
        failure = service.connection_failure(cause)
        if isinstance(cause, httpx2.ConnectTimeout):
            # The aiohttp client also raises it for a connection that is lost after sending.
            failure.unsent = False
        return failure

    def read_error(self, status: int, body: object, wait: float | None = None) -> Outcome:
        """Return what an error of the API means for the run, see `ServiceModel`.

        A completion if a filter stopped the prompt. A refusal for a redirect, 401, 402, 403, 404,
        405, an account without credit, an unknown model and a parameter that the model does not
        accept.

        The body is `{"error": {"message": ..., "type": ..., "param": ..., "code": ...}}` or only
        the inner object; anything else counts as empty.
        """
        error = body.get("error", body) if isinstance(body, dict) else None
        error = error if isinstance(error, dict) else {}
        # llama.cpp and vLLM repeat the status in `code` and put the name into `type`.
        code, kind = service.safe_code(error.get("code")), service.safe_code(error.get("type"))
        message = str(error.get("message", "")).lower()
        if status in {400, 403} and (code in _FILTER_CODES or _FILTER_MESSAGE.search(message)):
            return Completion(text="", finish=Finish.FILTER)
        if status == 400 and _TOO_LONG_MESSAGE in message:
            code = _TOO_LONG
        detail = f"HTTP {status} {code or kind}".rstrip()
        if status == 429:
            remedy = _NO_CREDIT_REMEDY if {code, kind} & _NO_CREDIT_CODES else None
        elif status in {400, 422} and code != _TOO_LONG:
            remedy = _parameter_remedy(error.get("param"), code, message)
        else:
            remedy = _REMEDIES.get(status)
        if remedy is not None:
            return self.refusal(detail, remedy, for_now=remedy == _NO_CREDIT_REMEDY)
        if status == 409:
            failure = "server_error"
        elif status in {503, 529}:
            failure = "overloaded"
        else:
            failure = service.failure_kind(status)
        return CallError(failure, detail, retry_after=wait)


def request_body(model: str, request: Request, *, endpoint: str) -> dict[str, Any]:
    """Return the JSON body of a request; the base URL determines the names of parameters.

    DeepSeek has no schemas: it is asked for a JSON object, whose shape the prompt must describe.
    """
    # OpenAI's newer models refuse `max_tokens`; other servers may ignore the new name.
    limit = "max_completion_tokens" if _is_host(endpoint, _OPENAI) else "max_tokens"
    body = service.chat_body(model, request, limit)
    if request.schema is not None and _is_host(endpoint, _DEEPSEEK):
        body["response_format"] = {"type": "json_object"}
    return body


def _status_inside(body: Any) -> int | None:
    """Return the status of an error that has HTTP status 200, as OpenRouter sends them.

    Its `code` is the status that it should have had. None if `body` is no such error.
    """
    match body:
        case {"choices": [_, *_]}:
            return None
        case {"error": {"code": int(code)}} if 400 <= code < 600:
            return code
    return None


def read_completion(body: object) -> Completion:
    """Read a chat completion from a call or a batch.

    Raises:
        CallError: bad_response: `body` is not a chat completion; server_error: it is incomplete.
    """
    completion, choice, message = service.first_choice(body)
    reason = choice.get("finish_reason")
    if reason in ("insufficient_system_resource", "error"):
        # DeepSeek's and OpenRouter's servers failed during the answer.
        raise CallError("server_error", f"finish_reason {reason}")
    text, finish = message.get("content") or "", _FINISHES.get(str(reason), Finish.UNKNOWN)
    if message.get("refusal"):
        text, finish = message["refusal"], Finish.REFUSAL
    if not isinstance(text, str):
        raise CallError("bad_response", "content is not text")
    # Ollama and newer vLLM write `reasoning`; DeepSeek, llama.cpp and older vLLM the other key.
    reasoning = [message.get(key) for key in ("reasoning_content", "reasoning")]
    model = completion.get("model")
    return Completion(
        text=text,
        finish=finish,
        model=model if isinstance(model, str) else None,
        usage=_read_usage(completion.get("usage")),
        reasoning=next((part for part in reasoning if isinstance(part, str) and part), None),
    )


def _read_usage(usage: Any) -> Usage | None:
    match usage:
        case {"prompt_tokens": prompt, "completion_tokens": completion}:
            cached = _detail(usage.get("prompt_tokens_details"), "cached_tokens")
            reasoning = _detail(usage.get("completion_tokens_details"), "reasoning_tokens")
            return Usage(
                input_tokens=prompt,
                output_tokens=_all_output(prompt, completion, reasoning, usage.get("total_tokens")),
                reasoning_tokens=reasoning,
                # DeepSeek's own key; where both are present they are equal.
                cached_tokens=cached or usage.get("prompt_cache_hit_tokens"),
            )
    return None


def _all_output(prompt: Any, completion: Any, reasoning: Any, total: Any) -> Any:
    """Return the tokens of the response, reasoning included; an invalid count stays as it is.

    In the `completion_tokens` of xAI and Gemini, reasoning is not included: only `total_tokens`
    counts it (32 + 9 + 94 of reasoning = 135 in xAI's example).
    """
    if not (is_count(prompt) and is_count(completion)):
        return completion
    if is_count(total) and total > prompt + completion:
        return total - prompt
    if is_count(reasoning) and reasoning > completion:
        return completion + reasoning
    return completion


def _detail(counts: object, name: str) -> Any:
    return counts.get(name) if isinstance(counts, dict) else None


def _parameter_remedy(param: object, code: str, message: str) -> str | None:
    if message == _UNKNOWN_MODEL_MESSAGE:
        return service.NO_MODEL_REMEDY
    # `response_format.json_schema.schema` is part of `response_format`.
    name = str(param).partition(".")[0] if param else ""
    if name == "max_tokens" and code == "unsupported_parameter":
        return _OTHER_LIMIT_REMEDY
    if not name and _UNSUPPORTED_MESSAGE.search(message):
        words = re.findall(r"\w+", message)
        name = next((setting for setting in _SETTINGS if setting in words), "")
    return service.NO_MODEL_REMEDY if name == "model" else _SETTINGS.get(name)


def _is_host(endpoint: str, host: str) -> bool:
    name = urlsplit(endpoint).hostname or ""
    return name == host or name.endswith(f".{host}")


_PAGE: Final = 100

_ENDED: Final = frozenset({"completed", "failed", "expired", "cancelled"})
_ITEM_CODES: Final[Mapping[str, str]] = {"batch_expired": "expired", "batch_cancelled": "cancelled"}

_TOO_MUCH_REMEDY: Final = (
    "more tokens than the account may have queued: run again when its other batches have ended, "
    "or with a lower --limit"
)
_FAILED_REMEDY: Final = "the provider's list of batches says why"


class OpenAIBatchService(batch.FileBatchService[openai.AsyncOpenAI]):
    """The batch API for one model of OpenAI (`BatchService`)."""

    file_keys = ("output_file_id", "error_file_id")

    async def poll(self, job: str) -> batch.BatchState:
        """Retrieve a batch; see `BatchService`."""
        described = await self._job(job)
        counts = described.get("request_counts")
        counts = counts if isinstance(counts, dict) else {}
        return batch.BatchState(
            ended=str(described.get("status")) in _ENDED,
            finished=batch.count_of(counts.get("completed")) + batch.count_of(counts.get("failed")),
            total=batch.count_of(counts.get("total")),
            absent=self._absent(described),
        )

    def _absent(self, job: dict[str, Any]) -> CallError | ProviderRefusedError:
        status = str(job.get("status"))
        if status in {"expired", "cancelled"}:
            return CallError(status)
        if status != "failed":
            return batch.absent_from_results()
        # The whole batch was refused, before any request was tried.
        match job.get("errors"):
            case {"data": [{"code": value}, *_]}:
                code = service.safe_code(value)
            case _:
                code = ""
        too_much = code == "token_limit_exceeded"
        remedy = _TOO_MUCH_REMEDY if too_much else _FAILED_REMEDY
        detail = f"batch failed {code}".rstrip()
        return self._model.refusal(detail, remedy, for_now=too_much)

    def _line_fields(self, request: Request) -> dict[str, Any]:
        body = request_body(self._model.model, request, endpoint=self._model.endpoint)
        return {"method": "POST", "url": batch.CHAT_COMPLETIONS, "body": body}

    def _upload(self, name: str, content: bytes) -> Awaitable[Any]:
        files = self._client.files.with_raw_response
        return files.create(file=(name, content), purpose="batch")

    def _create(self, file: str, metadata: dict[str, str]) -> Awaitable[Any]:
        return self._client.batches.with_raw_response.create(
            input_file_id=file,
            endpoint=batch.CHAT_COMPLETIONS,
            completion_window="24h",
            metadata=metadata,
        )

    def _retrieve(self, job: str) -> Awaitable[Any]:
        return self._client.batches.with_raw_response.retrieve(job)

    async def _jobs(self) -> AsyncIterator[object]:
        after: str | openai.Omit = openai.omit
        while True:
            page = self._client.batches.with_raw_response.list(limit=_PAGE, after=after)
            match await self._model.call_json(page):
                case {"data": list() as jobs, **rest}:
                    pass
                case _:
                    raise CallError("bad_response", "no list of batches")
            for job in jobs:
                yield job
            if not jobs or not rest.get("has_more"):
                return
            after = batch.id_of(jobs[-1])

    @asynccontextmanager
    async def _download(self, file: str) -> AsyncIterator[httpx2.Response]:
        content = self._client.files.with_streaming_response.content(file)
        async with AsyncExitStack() as stack:
            opening = stack.enter_async_context(content)
            missing = CallError(batch.RESULTS_GONE)
            yield (await self._model.call(opening, missing=missing)).http_response

    def _read_result(self, line: dict[str, Any]) -> Outcome:
        match line:
            case {"response": {"status_code": 200, "body": body}}:
                return read_completion(body)
            case {"response": {"status_code": int(status), "body": body}}:
                return self._model.read_error(status, body)
            case {"error": {"code": code}}:
                kind = _ITEM_CODES.get(str(code), "server_error")
                return CallError(kind, service.safe_code(code))
        return CallError("bad_response", "a result without an answer")
