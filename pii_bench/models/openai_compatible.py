"""Models behind the Chat Completions protocol: OpenAI, DeepSeek, vLLM, llama.cpp, Ollama.

And the batches of OpenAI, which no other of them has.

Sources: OpenAI's API reference and its guides on errors, structured outputs and batches,
api-docs.deepseek.com (create-chat-completion, guides/json_mode, quick_start/error_codes),
docs.vllm.ai (features: reasoning_outputs, structured_outputs) and openai 3.54.0.
"""

from __future__ import annotations

import json
import re
from contextlib import AsyncExitStack, aclosing
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import aiohttp
import openai

from pii_bench.models.base import CallError, Completion, Finish, Usage
from pii_bench.models.batch import (
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
from pii_bench.models.service import (
    MAX_TOKENS_REMEDY,
    NO_SCHEMA_REMEDY,
    NO_TEMPERATURE_REMEDY,
    REDIRECT_REMEDY,
    EndpointClient,
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

    from pii_bench.errors import ProviderRefusedError
    from pii_bench.models.base import Outcome, Request

PROVIDER: Final = "openai"
"""The one of them that has batches."""

_OPENAI: Final = "api.openai.com"
_DEEPSEEK: Final = "api.deepseek.com"

_FINISHES: Final[Mapping[str, Finish]] = {
    "stop": Finish.STOP,
    "length": Finish.LENGTH,
    "content_filter": Finish.FILTER,
}

# DeepSeek ends an answer this way when its servers give up, not when the model does.
_INTERRUPTED: Final = "insufficient_system_resource"

# Ollama and newer vLLM write `reasoning`; DeepSeek, llama.cpp and older vLLM the other.
_REASONING_KEYS: Final = ("reasoning_content", "reasoning")

_FILTER_CODES: Final = frozenset({"content_filter", "content_policy_violation"})
# DeepSeek gives its filter, an unknown model and too long a prompt the code of any other
# bad request, and OpenAI its filter of prompts: only the messages tell.
_FILTER_MESSAGE: Final = re.compile(r"content exists risk|(prompt|input) was flagged")
_UNKNOWN_MODEL_MESSAGE: Final = "model not exist"
_TOO_LONG_MESSAGE: Final = "maximum context length"
_TOO_LONG: Final = "context_length_exceeded"

_NO_MODEL_REMEDY: Final = "check the model's name and the base URL"
_NO_CREDIT_REMEDY: Final = "the account has no credit or quota left, or its limit is reached"
_REMEDIES: Final[Mapping[int, str]] = {
    401: "check the API key",
    402: _NO_CREDIT_REMEDY,
    403: "the key may not use this model",
    404: _NO_MODEL_REMEDY,
    405: _NO_MODEL_REMEDY,
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

# What every call of a run sends alike: refused once, it is refused always.
_SETTINGS: Final[Mapping[str, str]] = {
    "temperature": NO_TEMPERATURE_REMEDY,
    "max_tokens": MAX_TOKENS_REMEDY,
    "max_completion_tokens": MAX_TOKENS_REMEDY,
    "response_format": NO_SCHEMA_REMEDY,
}
_OTHER_LIMIT_REMEDY: Final = (
    "it takes no `max_tokens`, and only OpenAI's own endpoint is sent `max_completion_tokens`"
)
# Where a gateway has lost `param`, its words around the parameter's name are what is left.
_UNSUPPORTED_MESSAGE: Final = re.compile(
    r"\b(?:unsupported|not support(?:ed)?|unavailable|only (?:the default )?\(?1\b)"
)


CALL_ERRORS: Final = (openai.APIError, aiohttp.ClientError)
"""What a call may raise: the SDK lets some errors of aiohttp through."""


class _EndpointClient(EndpointClient, openai.DefaultAioHttpClient):
    """`EndpointClient` over aiohttp, as `openai[aiohttp]` brings it.

    1,000 calls, 200 at a time, took 1.6 s of CPU with it and 2.6 s without (openai 3.54.0).
    """


class OpenAICompatibleModel(ServiceModel[openai.AsyncOpenAI]):
    """A model of any server that speaks Chat Completions.

    Organization, project and headers of the SDK's own variables (OPENAI_ORG_ID,
    OPENAI_PROJECT_ID, OPENAI_CUSTOM_HEADERS) go to OpenAI and to no other endpoint.
    """

    def _open(self, api_key: str) -> EndpointClient:
        key = None if _is_host(self.endpoint, _OPENAI) else api_key
        return _EndpointClient(self.endpoint, self._timeout, key)

    def _connect(self, api_key: str) -> openai.AsyncOpenAI:
        return openai.AsyncOpenAI(
            api_key=api_key,
            base_url=self.endpoint,
            timeout=self._http.timeout,
            # Attempts are counted, paced and paid for in `calls`.
            max_retries=0,
            http_client=self._http,
        )

    async def _ask(self, request: Request) -> Outcome:
        body = request_body(self.model, request, endpoint=self.endpoint)
        try:
            # Raw, because the SDK's types turn `true` and `"7"` into counts.
            answer = await self.client.chat.completions.with_raw_response.create(**body)
        except CALL_ERRORS as error:
            return read_failure(error, provider=self.provider, model=self.model)
        return read_completion(parse_json(answer.http_response.content))


def request_body(model: str, request: Request, *, endpoint: str) -> dict[str, Any]:
    """The JSON body of a request.

    A schema goes into `response_format`, strict (OpenAI, vLLM, llama.cpp, Ollama). DeepSeek
    has no schemas: it is asked for a JSON object, whose shape the prompt must tell.

    Args:
        model: its name as the server knows it.
        request: what to ask.
        endpoint: the base URL, which decides what parameters are called.
    """
    own = _is_host(endpoint, _OPENAI)
    sampling = request.sampling
    body: dict[str, Any] = {
        "model": model,
        "messages": turns(request),
        # OpenAI's newer models refuse `max_tokens`; other servers may ignore the new name.
        "max_completion_tokens" if own else "max_tokens": sampling.max_tokens,
    }
    if sampling.temperature is not None:
        body["temperature"] = sampling.temperature
    if request.schema is None:
        return body
    if _is_host(endpoint, _DEEPSEEK):
        body["response_format"] = {"type": "json_object"}
    else:
        schema = {
            "name": request.schema.name,
            "strict": True,
            "schema": dict(request.schema.schema),
        }
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    return body


def read_completion(body: object) -> Completion:
    """Read a chat completion, as a call or a batch brings it.

    Raises:
        CallError: bad_response: `body` is no chat completion; server_error: the server gave
            up while it answered.
    """
    match body:
        case {"choices": [{"message": dict() as message, **choice}, *_], **answer}:
            pass
        case _:
            raise CallError("bad_response", "not JSON" if body is None else "no choices")
    reason = choice.get("finish_reason")
    if reason == _INTERRUPTED:
        raise CallError("server_error", _INTERRUPTED)
    text, finish = message.get("content") or "", _FINISHES.get(str(reason), Finish.UNKNOWN)
    if message.get("refusal"):
        text, finish = message["refusal"], Finish.REFUSAL
    if not isinstance(text, str):
        raise CallError("bad_response", "content is not text")
    thoughts = [message.get(key) for key in _REASONING_KEYS]
    model = answer.get("model")
    return Completion(
        text=text,
        finish=finish,
        model=model if isinstance(model, str) else None,
        usage=_usage(answer.get("usage")),
        reasoning=next((said for said in thoughts if isinstance(said, str) and said), None),
    )


def read_failure(error: Exception, *, provider: str, model: str) -> Outcome:
    """Say what an exception of a call means for the run, see `judge`.

    It holds the whole request: what is returned must be raised outside of its handler.

    Args:
        error: one of `CALL_ERRORS`.
        provider: who was asked.
        model: what was asked for.
    """
    match error:
        case openai.APIStatusError(response=response, body=body):
            wait = retry_after(response.headers)
            return judge(response.status_code, body, provider=provider, model=model, wait=wait)
        case openai.APIConnectionError():
            return connection_failure(error.__cause__)
    return connection_failure(error)


def judge(
    status: int, body: object, *, provider: str, model: str, wait: float | None = None
) -> Outcome:
    """Say what an error of the API means for the run.

    Args:
        status: of the answer, or of the one item of a batch.
        body: `{"error": {"message": ..., "type": ..., "param": ..., "code": ...}}` or only
            what is in it; anything else says nothing.
        provider: who answered.
        model: what was asked for.
        wait: seconds that the server asks to wait.

    Returns:
        A completion where a filter stopped the prompt. A refusal for a redirect, 401, 402,
        403, 404, 405, an account without credit, an unknown model and a parameter that the
        model does not take. For the rest the failure of this call.
    """
    error = body.get("error", body) if isinstance(body, dict) else None
    error = error if isinstance(error, dict) else {}
    # llama.cpp and vLLM repeat the status in `code` and put the name into `type`.
    code, kind = safe_code(error.get("code")), safe_code(error.get("type"))
    message = str(error.get("message", "")).lower()
    if status in {400, 403} and (code in _FILTER_CODES or _FILTER_MESSAGE.search(message)):
        return Completion(text="", finish=Finish.FILTER)
    if status == 400 and _TOO_LONG_MESSAGE in message:
        code = _TOO_LONG
    detail = f"HTTP {status} {code or kind}".rstrip()
    if 300 <= status < 400:
        remedy: str | None = REDIRECT_REMEDY
    elif status == 429:
        remedy = _NO_CREDIT_REMEDY if {code, kind} & _NO_CREDIT_CODES else None
    elif status in {400, 422} and code != _TOO_LONG:
        remedy = _parameter_remedy(error.get("param"), code, message)
    else:
        remedy = _REMEDIES.get(status)
    if remedy is not None:
        return refusal(provider, model, detail, remedy)
    return CallError(_kind(status), detail, retry_after=wait)


def _parameter_remedy(param: object, code: str, message: str) -> str | None:
    if message == _UNKNOWN_MODEL_MESSAGE:
        return _NO_MODEL_REMEDY
    # `response_format.json_schema.schema` is a fault of `response_format`.
    named = str(param).partition(".")[0] if param else ""
    if named == "max_tokens" and code == "unsupported_parameter":
        return _OTHER_LIMIT_REMEDY
    if not named and _UNSUPPORTED_MESSAGE.search(message):
        words = re.findall(r"\w+", message)
        named = next((name for name in _SETTINGS if name in words), "")
    return _NO_MODEL_REMEDY if named == "model" else _SETTINGS.get(named)


def _kind(status: int) -> str:
    if status in {503, 529}:
        return "overloaded"
    return "server_error" if status == 409 else failure_kind(status)


def _usage(usage: Any) -> Usage | None:
    match usage:
        case {"prompt_tokens": prompt, "completion_tokens": completion, **rest}:
            pass
        case _:
            return None
    cached = _detail(rest.get("prompt_tokens_details"), "cached_tokens")
    return Usage(
        input_tokens=prompt,
        output_tokens=completion,
        reasoning_tokens=_detail(rest.get("completion_tokens_details"), "reasoning_tokens"),
        # DeepSeek's own name; where it gives both they are the same.
        cached_tokens=cached or _detail(rest, "prompt_cache_hit_tokens"),
    )


def _detail(counts: object, name: str) -> Any:
    return counts.get(name) if isinstance(counts, dict) else None


def _is_host(endpoint: str, host: str) -> bool:
    named = urlsplit(endpoint).hostname or ""
    return named == host or named.endswith(f".{host}")


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

    # A tenth of what the API allows (50,000 requests, 200 MB), and less.
    limits = LIMITS

    def __init__(self, model: OpenAICompatibleModel) -> None:
        self._client, self._model, self._endpoint = model.client, model.model, model.endpoint

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
