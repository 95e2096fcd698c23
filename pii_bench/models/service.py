"""The common part of the adapters of HTTP services: HTTP client, calls, and errors.

The SDKs take an HTTP client as `http_client` (openai, anthropic) or `async_client` (mistralai).
The error that a service sends may quote a text or a key: error messages contain only codes that
can be neither.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
from abc import ABC, abstractmethod
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, TypeVar

import httpx2

from pii_bench.errors import PiiBenchError, ProviderRefusedError, ProviderUnavailableError
from pii_bench.files import encodable
from pii_bench.models.base import CallError, Completion
from pii_bench.models.catalog import CUSTOM_ENDPOINT_KEY, is_loopback, normalise_base_url

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping

    from pii_bench.models.base import Outcome, Request
    from pii_bench.models.batch import BatchService

Client = TypeVar("Client")
T = TypeVar("T")

LARGEST_BODY: Final = 32_000_000
"""Bytes of the longest response that is read, after decompression."""

_CONNECT_SECONDS: Final = 10.0
# More than any run has in flight; the SDKs' own clients have the same limit.
_MOST_CONNECTIONS: Final = 1000

_SENT_HEADERS: Final = frozenset(
    {
        "accept",
        "accept-encoding",
        "anthropic-version",
        "connection",
        "content-length",
        "content-type",
        "host",
        "transfer-encoding",
        "user-agent",
        # Tells openai and anthropic that the raw response was asked for.
        "x-stainless-raw-response",
    }
)

# The advice in refusals that several protocols have.
KEY_REMEDY: Final = f"check the API key (with --base-url: {CUSTOM_ENDPOINT_KEY})"
NO_MODEL_REMEDY: Final = "check the model's name and the base URL"
NO_TEMPERATURE_REMEDY: Final = "it takes no such `temperature`: run with `--temperature default`"
NO_SCHEMA_REMEDY: Final = "it takes no such JSON schema: run without `--output schema`"
MAX_TOKENS_REMEDY: Final = (
    "it writes fewer tokens: run with a lower `--max-tokens` (`utility`: `--answer-tokens`)"
)

REMEDIES: Final[Mapping[int, str]] = {
    **dict.fromkeys(
        range(300, 400), "the base URL redirects to another, and texts go nowhere else: check it"
    ),
    401: KEY_REMEDY,
    403: "the key may not use this model",
    404: NO_MODEL_REMEDY,
}
"""The advice by HTTP status; 402 differs."""


class BodyTooLargeError(httpx2.DecodingError):
    """A response is longer than `LARGEST_BODY`."""


class EndpointClient(httpx2.AsyncClient):
    """The HTTP client of one endpoint.

    It follows no redirects, because the texts would go to a URL that no result names. It reads
    at most `LARGEST_BODY` of a response that is not streamed. It uses no proxy for this machine.

    A request fails after `timeout` seconds without a byte; connecting takes 10 at most. With a key,
    which is sent with each request, a request has only the headers that HTTP and the protocols
    need, and none that an SDK reads from the environment. Without, headers are left to the SDK.
    """

    def __init__(self, endpoint: str, timeout: float, key: str | None) -> None:
        self._key = key
        super().__init__(
            timeout=httpx2.Timeout(timeout, connect=min(timeout, _CONNECT_SECONDS)),
            limits=httpx2.Limits(
                max_connections=_MOST_CONNECTIONS, max_keepalive_connections=_MOST_CONNECTIONS
            ),
            follow_redirects=False,
            trust_env=not is_loopback(endpoint),
        )

    async def send(
        self, request: httpx2.Request, *, stream: bool = False, **options: Any
    ) -> httpx2.Response:
        """Send a request, and read the response unless it is a success that is streamed.

        Raises:
            BodyTooLargeError: the response is too long.
            httpx2.RequestError: there is no response, or it is incomplete.
        """
        if self._key is not None:
            for name in set(request.headers) - _SENT_HEADERS:
                del request.headers[name]
            request.headers["authorization"] = f"Bearer {self._key}"
        # Mistral's SDK has a single timeout for everything, connecting included.
        request.extensions["timeout"] = self.timeout.as_dict()
        response = await super().send(request, stream=True, **options)
        if stream and response.is_success:
            return response
        try:
            content = await _read(response)
        finally:
            await response.aclose()
        # The content is already decompressed.
        headers = [
            (name, value)
            for name, value in response.headers.multi_items()
            if name not in {"content-encoding", "content-length"}
        ]
        return httpx2.Response(
            response.status_code, headers=headers, content=content, request=request
        )


async def _read(response: httpx2.Response) -> bytes:
    parts, size = [], 0
    # Decompressed in pieces of at most 1 MB.
    async for part in response.aiter_bytes():
        size += len(part)
        if size > LARGEST_BODY:
            raise BodyTooLargeError(f"more than {LARGEST_BODY} bytes", request=response.request)
        parts.append(part)
    return b"".join(parts)


def connection_failure(error: BaseException | None) -> CallError:
    """Return the error of a call without a complete response, from the HTTP client's exception."""
    if isinstance(error, BodyTooLargeError):
        return CallError("bad_response", f"more than {LARGEST_BODY // 1_000_000} MB")
    if isinstance(error, httpx2.DecodingError):
        return CallError("bad_response", "cannot be decompressed")
    # openai's aiohttp client raises ConnectTimeout for a refused connection (3.54.0).
    if isinstance(error, httpx2.TimeoutException) and not isinstance(error, httpx2.ConnectTimeout):
        return CallError("timeout")
    unsent = isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout)
    return CallError("connection", unsent=unsent)


class ServiceModel(ABC, Generic[Client]):
    """A `Model` behind an endpoint; each protocol has a subclass.

    An SDK's exception contains the request, with its key and its texts. So it is interpreted
    inside its handler and the result raised outside: no `__context__` keeps the request alive.

    `provider` and `name` are those in results; `model` is the model's name as the service knows
    it. `api_key`: anything for a server that wants no key. Where the SDK adds `/v1` to the base
    URL, it may end with it or not. One attempt may take `timeout` seconds. The next `complete`
    after `close` opens another client.

    Raises:
        PiiBenchError: `base_url` is not valid, see `normalise_base_url`, or an HTTP header cannot
            contain `api_key`.
    """

    errors: ClassVar[tuple[type[Exception], ...]]
    """The exceptions that a call of the SDK may raise."""

    _added_path: ClassVar[str] = ""

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
        if not re.fullmatch(r"[!-~]+", api_key):
            raise PiiBenchError(
                f"the key for provider {provider!r} (with --base-url: {CUSTOM_ENDPOINT_KEY}) is "
                "empty or holds a character other than printable ASCII (often a line break at its "
                "end)"
            )
        self.provider, self.model = provider, model
        self.name = name or f"{provider}/{model}"
        self.endpoint = normalise_base_url(base_url).removesuffix(self._added_path)
        self._timeout, self._key = timeout, api_key
        self._start()

    @property
    def identity(self) -> Mapping[str, str]:
        """The endpoint."""
        return {"endpoint": self.endpoint}

    async def close(self) -> None:
        """Close the connections; the next `complete` may be in another event loop."""
        await self._http.aclose()

    async def complete(self, request: Request) -> Completion:
        """Answer one request with one attempt.

        Raises:
            CallError: timeout, connection, rate_limit, overloaded, server_error, bad_request or
                bad_response.
            ProviderRefusedError: every call would fail.
        """
        if self._http.is_closed:
            self._start()
        try:
            async with asyncio.timeout(self._timeout):
                outcome = await self._ask(request)
        except self.errors as error:
            outcome = self._read_failure(error)
        except TimeoutError:
            outcome = CallError("timeout")
        if isinstance(outcome, Completion):
            return outcome
        raise outcome

    async def call(self, call: Awaitable[T], *, missing: Exception | None = None) -> T:
        """Await a call of the SDK other than a completion.

        Raises:
            CallError: this call failed.
            ProviderRefusedError: every call would fail.
            Exception: `missing`, if it is given, for HTTP 404.
        """
        failure: Exception
        try:
            return await call
        except self.errors as error:
            if missing is not None and getattr(error, "status_code", None) == 404:
                failure = missing
            else:
                outcome = self._read_failure(error)
                if isinstance(outcome, Completion):
                    # A filter stops completions, not other calls.
                    outcome = CallError("bad_request", "filtered")
                failure = outcome
        raise failure

    async def call_json(self, call: Awaitable[Any], *, missing: Exception | None = None) -> object:
        """Await a raw response like `call`; return its JSON, None if it is not valid."""
        response = await self.call(call, missing=missing)
        return parse_json(response.http_response.content)

    def batch_service(self) -> BatchService | None:
        """Return the provider's batch API, which uses this model's client; None if it has none."""
        return None

    def refusal(self, detail: str, remedy: str, *, for_now: bool) -> ProviderRefusedError:
        """Return the error that stops a run because every call would be refused.

        `detail` is HTTP status and code; `for_now` is whether the same calls may succeed later.
        """
        kind = ProviderUnavailableError if for_now else ProviderRefusedError
        what = f"provider {self.provider!r} refuses model {self.model!r}"
        return kind(f"{what}: {detail}: {remedy}")

    def _start(self) -> None:
        self._http = self._open()
        self.client = self._connect()

    def _open(self) -> EndpointClient:
        return EndpointClient(self.endpoint, self._timeout, self._key)

    @abstractmethod
    def _connect(self) -> Client:
        """Return the SDK's client, which uses `_http`."""

    @abstractmethod
    async def _ask(self, request: Request) -> Outcome:
        """Make the call, and return what it means for the run; may raise `errors` and CallError."""

    @abstractmethod
    def read_error(self, status: int, body: object, wait: float | None = None) -> Outcome:
        """Return what an error of the API means: a completion, a refusal, or a failed call.

        `body` is JSON of any shape; `wait` is the seconds that the server asks to wait.
        """

    @abstractmethod
    def _read_failure(self, error: Exception) -> Outcome:
        """Return what one of `errors` means for the run."""


def encode_messages(request: Request) -> list[dict[str, str]]:
    """Return the messages of a request as JSON objects, in the form common to all protocols.

    Lone surrogates, which no SDK sends, become U+FFFD.
    """
    return [
        {"role": message.role, "content": encodable(message.content)}
        for message in request.messages
    ]


def chat_body(model: str, request: Request, limit: str = "max_tokens") -> dict[str, Any]:
    """Return the JSON body of a request to Chat Completions (OpenAI, Mistral).

    A schema goes into `response_format`, strict. `limit` is the name of the token limit.
    """
    body: dict[str, Any] = {
        "model": model,
        "messages": encode_messages(request),
        limit: request.sampling.max_tokens,
    }
    if request.sampling.temperature is not None:
        body["temperature"] = request.sampling.temperature
    if request.schema is not None:
        schema = dict(request.schema.schema)
        body["response_format"] = {
            "type": "json_schema",
            "json_schema": {"name": request.schema.name, "strict": True, "schema": schema},
        }
    return body


def parse_json(content: bytes | bytearray | str) -> object:
    """Parse a response; return None if it is not valid JSON, or `null`."""
    try:
        body: object = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return body


def first_choice(body: Any) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Return a chat completion (OpenAI, Mistral), its first choice, and the choice's message.

    Raises:
        CallError: bad_response: `body` is not a chat completion.
    """
    match body:
        case {"choices": [{"message": dict() as message} as choice, *_]}:
            return body, choice, message
    raise CallError("bad_response", "not JSON" if body is None else "no choices")


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a server asks to wait, from its headers by lower-case name.

    The value of `retry-after-ms`, else of `Retry-After` (RFC 9110, 10.2.3: seconds or a date; 0
    for a date in the past); None if neither is valid.
    """
    for name, unit in (("retry-after-ms", 1000), ("retry-after", 1)):
        try:
            seconds = float(headers.get(name, "")) / unit
        except ValueError:
            continue
        if math.isfinite(seconds) and seconds >= 0:
            return seconds
    try:
        date = parsedate_to_datetime(headers.get("retry-after", ""))
    except (ValueError, OverflowError):
        return None
    if date.tzinfo is None:
        return None
    return max(0.0, (date - datetime.now(UTC)).total_seconds())


def safe_code(*values: object) -> str:
    """Return the first value that can only be a provider's short code; empty if none is.

    Letters, `_`, `.` and `-`: a key contains digits, a text spaces, and a number says less than
    the HTTP status does.
    """
    for value in values:
        if isinstance(value, str) and re.fullmatch(r"[A-Za-z_.-]{1,64}", value):
            return value
    return ""


def remedy_in(message: str, remedies: Mapping[str, str]) -> str | None:
    """Return the remedy of the first pattern that is in an error's message."""
    return next((remedies[pattern] for pattern in remedies if re.search(pattern, message)), None)


def failure_kind(status: int) -> str:
    """Return the kind of a failed call, see `CallError`, from its HTTP status alone."""
    if status >= 500:
        return "server_error"
    return {408: "timeout", 429: "rate_limit"}.get(status, "bad_request")
