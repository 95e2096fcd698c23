"""Models behind the Chat Completions protocol: OpenAI, DeepSeek, vLLM, llama.cpp, Ollama.

Retries are the SDK's: connection errors, timeouts, 408, 409, 429 and 5xx, with
exponential backoff, or after `Retry-After` where the server sends at most 120 s
(openai 3.51, `_base_client.py`, `_should_retry`, `_calculate_retry_timeout`).
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final, cast
from urllib.parse import urlsplit

from pii_bench.errors import PiiBenchError, ProviderRefusedError
from pii_bench.models.base import CallError, Completion, Finish, Usage
from pii_bench.models.endpoints import is_loopback, normalise_base_url

if TYPE_CHECKING:
    from collections.abc import Mapping

    import openai
    from openai.types.chat import ChatCompletionMessageParam

    from pii_bench.models.base import Request

_CONNECT_SECONDS: Final = 10.0

_FINISHES: Final[Mapping[str, Finish]] = {
    "stop": Finish.STOP,
    "length": Finish.LENGTH,
    "content_filter": Finish.FILTER,
}

# DeepSeek ends an answer this way when its servers give up, not when the model does.
_INTERRUPTED: Final = "insufficient_system_resource"

_FILTER_CODES: Final = frozenset({"content_filter", "content_policy_violation"})
# DeepSeek gives these two the code of any other bad request; only the message tells.
_FILTER_MESSAGE: Final = "Content Exists Risk"
_UNKNOWN_MODEL_MESSAGE: Final = "Model Not Exist"

_REMEDIES: Final[Mapping[int, str]] = {
    401: "check the API key",
    402: "the account has no credit left",
    403: "the key may not use this model",
    404: "check the model's name and the base URL",
}
_NO_QUOTA_REMEDY: Final = "the account has no quota left"


class OpenAICompatibleModel:
    """A model of any server that speaks Chat Completions.

    Args:
        provider: names the protocol's speaker in results.
        model: the model's name as the server knows it.
        name: how results name it; None for `provider/model`.
        api_key: printable ASCII without spaces; a server that wants none takes any.
        base_url: of the endpoint.
        timeout: seconds that one attempt may wait for the server.
        max_retries: further attempts after the first; 0 for none.

    Raises:
        PiiBenchError: `base_url` is not usable, see `normalise_base_url`, or the key
            holds a character that no HTTP header may.
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
        max_retries: int = 4,
    ) -> None:
        if not re.fullmatch(r"[!-~]+", api_key):
            raise PiiBenchError(
                f"the key for provider {provider!r} is empty or holds a character other than "
                "printable ASCII (often a line break at its end)"
            )
        self._provider, self._model = provider, model
        self._name = name or f"{provider}/{model}"
        self._endpoint = normalise_base_url(base_url)
        self._client = _client(self._endpoint, api_key, timeout, max_retries)

    @property
    def name(self) -> str:
        """`provider/model`, or the name that was given."""
        return self._name

    @property
    def identity(self) -> Mapping[str, str]:
        """The endpoint."""
        return {"endpoint": self._endpoint}

    @property
    def endpoint(self) -> str:
        """The base URL."""
        return self._endpoint

    async def complete(self, request: Request) -> Completion:
        """Answer one request.

        Raises:
            CallError: timeout, connection, rate_limit, server_error, bad_request or
                bad_response, after the SDK's retries.
            ProviderRefusedError: HTTP 401, 402, 403, 404, an unknown model or no quota.
        """
        import openai

        # What the SDK raises holds the request, with its key and its text. It is turned
        # into an error of ours inside the handler and raised outside of it, so that
        # `__context__` does not keep it alive.
        failure: CallError | ProviderRefusedError
        try:
            body = await self._post(request)
        except openai.APIStatusError as error:
            outcome = self._judge(error)
            if isinstance(outcome, Completion):
                return outcome
            failure = outcome
        except openai.APITimeoutError:
            failure = CallError("timeout")
        except openai.APIConnectionError:
            failure = CallError("connection")
        except (json.JSONDecodeError, UnicodeDecodeError):
            failure = CallError("bad_response", "not JSON")
        else:
            return _completion(body)
        raise failure

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def _post(self, request: Request) -> object:
        import openai

        limit, sampling = request.sampling.max_tokens, request.sampling
        own = _is_openai(self._endpoint)
        messages = cast(
            "list[ChatCompletionMessageParam]",
            [{"role": turn.role, "content": turn.content} for turn in request.messages],
        )
        # The raw answer: the SDK checks no field of the parsed one.
        response = await self._client.chat.completions.with_raw_response.create(
            model=self._model,
            messages=messages,
            temperature=sampling.temperature,
            # OpenAI's newer models refuse `max_tokens`; other servers may ignore the new name.
            max_completion_tokens=limit if own else openai.omit,
            max_tokens=openai.omit if own else limit,
        )
        body: object = json.loads(response.content)
        return body

    def _judge(self, error: openai.APIStatusError) -> Completion | CallError | ProviderRefusedError:
        status, code, message = error.status_code, _code(error), _error_message(error.body)
        if status == 400 and (code in _FILTER_CODES or message == _FILTER_MESSAGE):
            return Completion(text="", finish=Finish.FILTER)
        detail = f"HTTP {status} {code}".rstrip()
        remedy = _REMEDIES.get(status)
        if status == 429 and code == "insufficient_quota":
            remedy = _NO_QUOTA_REMEDY
        if status == 400 and message == _UNKNOWN_MODEL_MESSAGE:
            remedy = _REMEDIES[404]
        if remedy is not None:
            return ProviderRefusedError(
                f"provider {self._provider!r} refuses model {self._model!r}: {detail}: {remedy}"
            )
        if status == 429:
            return CallError("rate_limit", detail)
        return CallError("server_error" if status >= 500 else "bad_request", detail)


def _client(endpoint: str, api_key: str, timeout: float, max_retries: int) -> openai.AsyncOpenAI:
    import openai

    client = openai.AsyncOpenAI(
        api_key=api_key,
        base_url=endpoint,
        timeout=openai.Timeout(timeout, connect=min(timeout, _CONNECT_SECONDS)),
        max_retries=max_retries,
        # A proxy of the environment would look for the loopback on its own machine.
        http_client=(
            openai.DefaultAsyncHttpx2Client(trust_env=False) if is_loopback(endpoint) else None
        ),
    )
    if not _is_openai(endpoint):
        # The SDK takes both from the environment: account ids of OpenAI, for nobody else.
        client.organization = client.project = None
    return client


def _is_openai(endpoint: str) -> bool:
    host = urlsplit(endpoint).hostname or ""
    return host == "api.openai.com" or host.endswith(".api.openai.com")


def _code(error: openai.APIStatusError) -> str:
    """The provider's short code; empty where it sends none that is safe to print."""
    # llama.cpp and vLLM repeat the status in `code` and put the name into `type`.
    for value in (error.code, error.type):
        if (
            isinstance(value, str)
            and re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", value)
            and not value.isdigit()
        ):
            return value
    return ""


def _error_message(body: object) -> object:
    return body.get("message") if isinstance(body, dict) else None


def _completion(body: object) -> Completion:
    match body:
        case {"choices": [{"message": dict() as message, **choice}, *_], **answer}:
            pass
        case _:
            raise CallError("bad_response", "no choices")
    reason = choice.get("finish_reason")
    if reason == _INTERRUPTED:
        raise CallError("server_error", _INTERRUPTED)
    text, finish = message.get("content") or "", _FINISHES.get(str(reason), Finish.UNKNOWN)
    if message.get("refusal"):
        text, finish = message["refusal"], Finish.REFUSAL
    if not isinstance(text, str):
        raise CallError("bad_response", "content is not text")
    model = answer.get("model")
    return Completion(
        text=text,
        finish=finish,
        model=model if isinstance(model, str) else None,
        usage=_usage(answer.get("usage")),
    )


def _usage(usage: object) -> Usage | None:
    match usage:
        case {"prompt_tokens": int(prompt), "completion_tokens": int(completion)}:
            return Usage(input_tokens=prompt, output_tokens=completion)
        case _:
            return None
