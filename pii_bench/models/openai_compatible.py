"""Models behind the Chat Completions protocol: OpenAI, DeepSeek, vLLM, llama.cpp, Ollama.

Sources: OpenAI's API reference and its guides on errors and structured outputs,
api-docs.deepseek.com (create-chat-completion, guides/json_mode, quick_start/error_codes),
docs.vllm.ai (features: reasoning_outputs, structured_outputs) and openai 3.51.0.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from pii_bench.models.base import CallError, Completion, Finish, Usage
from pii_bench.models.endpoints import normalise_base_url
from pii_bench.models.keys import check_key
from pii_bench.models.service import ServiceModel
from pii_bench.models.transport import (
    MAX_TOKENS_REMEDY,
    NO_SCHEMA_REMEDY,
    NO_TEMPERATURE_REMEDY,
    REDIRECT_REMEDY,
    failure_kind,
    parse_json,
    refusal,
    retry_after,
    safe_code,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    import httpx2
    import openai

    from pii_bench.errors import ProviderRefusedError
    from pii_bench.models.base import Request

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


class OpenAICompatibleModel(ServiceModel):
    """A model of any server that speaks Chat Completions.

    Args:
        provider: names the protocol's speaker in results.
        model: the model's name as the server knows it.
        api_key: printable ASCII without spaces; a server that wants none takes any.
        base_url: of the endpoint.
        name: how results name it; None for `provider/model`.
        timeout: seconds that one attempt may take.

    Raises:
        PiiBenchError: `base_url` or `api_key` cannot be used, see `normalise_base_url` and
            `check_key`.
    """

    def __init__(
        self,
        provider: str,
        model: str,
        *,
        api_key: str,
        base_url: str,
        name: str | None = None,
        timeout: float = 120.0,
    ) -> None:
        check_key(provider, api_key)
        super().__init__(provider, model, name, normalise_base_url(base_url))
        self._provider = provider
        # Whole, because the SDK parses a relative one three times a call.
        self._url = f"{self._endpoint}/chat/completions"
        self._client = open_client(self._endpoint, api_key, timeout)

    @property
    def client(self) -> openai.AsyncOpenAI:
        """The SDK's client, for the API's other parts; `close` closes it."""
        return self._client

    async def complete(self, request: Request) -> Completion:
        """Answer one request with one attempt.

        Raises:
            CallError: timeout, connection, rate_limit, overloaded, server_error,
                bad_request or bad_response.
            ProviderRefusedError: every call would fail, see `judge`.
        """
        import openai

        # What the SDK raises holds the request, with its key and its text. It is read
        # inside the handler and answered outside of it, so that `__context__` does not
        # keep it alive.
        outcome: httpx2.Response | CallError
        try:
            outcome = await self._post(request)
        except openai.APIStatusError as error:
            outcome = error.response
        except openai.APITimeoutError:
            outcome = CallError("timeout")
        except openai.APIConnectionError:
            outcome = CallError("connection")
        if isinstance(outcome, CallError):
            raise outcome
        return self._read(outcome)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def _post(self, request: Request) -> httpx2.Response:
        import httpx2

        body = request_body(self._model, request, endpoint=self._endpoint)
        # Not `chat.completions.create`: it walks through all arguments and headers, at
        # half a millisecond a call.
        return await self._client.post(
            self._url, cast_to=httpx2.Response, content=json.dumps(body).encode()
        )

    def _read(self, response: httpx2.Response) -> Completion:
        body = parse_json(response.content)
        if response.is_success:
            return read_completion(body)
        outcome = judge(
            response.status_code,
            body,
            provider=self._provider,
            model=self._model,
            wait=retry_after(response.headers),
        )
        if isinstance(outcome, Completion):
            return outcome
        raise outcome


def open_client(endpoint: str, api_key: str, timeout: float) -> openai.AsyncOpenAI:
    """Make the SDK's client: one attempt a call.

    Organization, project and headers of the SDK's own variables (OPENAI_ORG_ID,
    OPENAI_PROJECT_ID, OPENAI_CUSTOM_HEADERS) go to OpenAI and to no other endpoint.

    Args:
        endpoint: the base URL.
        api_key: see `check_key`.
        timeout: seconds that one attempt may take.
    """
    from pii_bench.models.aiohttp_import import import_without_certificates
    from pii_bench.models.openai_import import import_client_alone

    import_without_certificates()
    import_client_alone()
    import openai

    from pii_bench.models.openai_transport import EndpointClient

    class AsyncOpenAI(openai.AsyncOpenAI):
        """Sends nothing but the request and the key."""

        @property
        def default_headers(self) -> dict[str, str | openai.Omit]:
            json_type = "application/json"
            return {"Accept": json_type, "Content-Type": json_type, "User-Agent": self.user_agent}

    http = EndpointClient(endpoint, timeout)
    at_openai = _is_host(endpoint, _OPENAI)
    client = (openai.AsyncOpenAI if at_openai else AsyncOpenAI)(
        api_key=api_key, base_url=endpoint, timeout=http.timeout, max_retries=0, http_client=http
    )
    if not at_openai:
        # Of headers that are not sent; each of the first calls would find it out in a thread.
        client._platform = "Unknown"
    return client


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
        "messages": [{"role": turn.role, "content": turn.content} for turn in request.messages],
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


def judge(
    status: int, body: object, *, provider: str, model: str, wait: float | None = None
) -> Completion | CallError | ProviderRefusedError:
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
