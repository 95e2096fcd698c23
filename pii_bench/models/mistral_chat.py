"""Models behind Mistral's Chat Completions.

Sources: the API's reference (docs.mistral.ai/api), its error glossary, its pages on prompt
caching, reasoning and structured output, and mistralai 3.7.0.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any, Final, TypeGuard

import httpx2
from mistralai.client import Mistral
from mistralai.client.errors import MistralError
from mistralai.client.utils.logger import NoOpLogger
from mistralai.extra.observability import TelemetryConfigurationError, configure_telemetry
from opentelemetry.trace import NoOpTracerProvider

from pii_bench.errors import ProviderRefusedError
from pii_bench.models.base import CallError, Completion, Finish, Usage
from pii_bench.models.service import (
    MAX_TOKENS_REMEDY,
    NO_SCHEMA_REMEDY,
    NO_TEMPERATURE_REMEDY,
    REDIRECT_REMEDY,
    ServiceModel,
    connection_failure,
    failure_kind,
    parse_json,
    refusal,
    retry_after,
    safe_code,
    turns,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mistralai.client.types import BaseModel

    from pii_bench.models.base import Outcome, Request

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
