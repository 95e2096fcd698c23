"""What the adapters of HTTP services share: HTTP client, calls, and how a failed one is told.

The SDKs take an HTTP client as `http_client` (openai, anthropic) or `async_client` (mistralai).
What a service answers to a refused request may repeat a text or a key: only codes that cannot be
one of them go into messages.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, TypeVar

import httpx2

from pii_bench.errors import PiiBenchError, ProviderRefusedError
from pii_bench.models.base import CallError, Completion
from pii_bench.models.catalog import is_loopback, normalise_base_url

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pii_bench.models.base import Outcome, Request

Client = TypeVar("Client")

LARGEST_BODY: Final = 32_000_000
"""Bytes of the longest answer that is read, after decompression."""

_CONNECT_SECONDS: Final = 10.0
# More than any run has under way; the SDKs' own clients stop at as many.
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
        # By it openai and anthropic know that the raw answer was asked for.
        "x-stainless-raw-response",
    }
)

REDIRECT_REMEDY: Final = "the base URL redirects to another, and texts go nowhere else: check it"
"""What helps where an endpoint answers 3xx."""

NO_TEMPERATURE_REMEDY: Final = "it takes no such `temperature`: run with `--temperature default`"
"""What helps where a model refuses the temperature."""

NO_SCHEMA_REMEDY: Final = "it takes no such JSON schema: run without `--output schema`"
"""What helps where a model refuses structured output."""

MAX_TOKENS_REMEDY: Final = "it writes fewer tokens: run with a lower `--max-tokens`"
"""What helps where a model refuses the limit on its answer."""


class BodyTooLargeError(httpx2.DecodingError):
    """An answer is longer than `LARGEST_BODY`."""


class EndpointClient(httpx2.AsyncClient):
    """The HTTP client of one endpoint.

    It follows no redirect, because the texts would go where no result says. It reads no answer
    beyond `LARGEST_BODY`, except where it is streamed. It asks no proxy for this machine.

    Args:
        endpoint: the base URL.
        timeout: seconds without a byte after which a request fails; connecting takes 10 at most.
        key: sent with each request, which then has no other headers than those that HTTP and the
            protocols need: nothing that an SDK reads from the environment. None to leave the
            headers to the SDK.
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
        """Send a request, and read the answer unless it is a success that is to be streamed.

        Raises:
            BodyTooLargeError: the answer is too long.
            httpx2.RequestError: there is no answer, or it breaks off.
        """
        if self._key is not None:
            for name in set(request.headers) - _SENT_HEADERS:
                del request.headers[name]
            request.headers["authorization"] = f"Bearer {self._key}"
        # Mistral's SDK knows one time for everything, connecting included.
        request.extensions["timeout"] = self.timeout.as_dict()
        response = await super().send(request, stream=True, **options)
        if stream and response.is_success:
            return response
        try:
            content = await _read(response)
        finally:
            await response.aclose()
        # The content is decompressed.
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
    # Decompressed in pieces of 1 MB at most.
    async for part in response.aiter_bytes():
        size += len(part)
        if size > LARGEST_BODY:
            raise BodyTooLargeError(f"more than {LARGEST_BODY} bytes", request=response.request)
        parts.append(part)
    return b"".join(parts)


def connection_failure(error: BaseException | None) -> CallError:
    """What it means that an endpoint brought no whole answer.

    Args:
        error: what the HTTP client raised: the `__cause__` of an SDK's connection error.
    """
    match error:
        case BodyTooLargeError():
            return CallError("bad_response", f"more than {LARGEST_BODY // 1_000_000} MB")
        case httpx2.DecodingError():
            return CallError("bad_response", "cannot be decompressed")
        case httpx2.TimeoutException() if not isinstance(error, httpx2.ConnectTimeout):
            return CallError("timeout")
    # A refused connection is a `ConnectTimeout` to the aiohttp client of openai (3.54.0).
    return CallError("connection")


class ServiceModel(Generic[Client]):
    """The part of a `Model` behind an endpoint that no protocol changes.

    Args:
        provider: names the protocol's speaker in results.
        model: the model's name as the service knows it.
        api_key: printable ASCII without spaces; a server that wants none takes any.
        base_url: of the endpoint; where the SDK adds `/v1`, with or without it at its end.
        name: how results name it; None for `provider/model`.
        timeout: seconds that one attempt may take.

    Attributes:
        provider: as it was given.
        model: likewise.
        name: `provider/model`, or the name that was given.
        endpoint: the base URL in the form that results name.
        client: the SDK's client, for the API's other parts; `close` closes it.

    Raises:
        PiiBenchError: `base_url` or `api_key` cannot be used, see `normalise_base_url` and
            `check_key`.
    """

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
        check_key(provider, api_key)
        self.provider, self.model = provider, model
        self.name = name or f"{provider}/{model}"
        self.endpoint = normalise_base_url(base_url).removesuffix(self._added_path)
        self._timeout = timeout
        self._http = self._open(api_key)
        self.client = self._connect(api_key)

    @property
    def identity(self) -> Mapping[str, str]:
        """The endpoint."""
        return {"endpoint": self.endpoint}

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    def _open(self, api_key: str) -> EndpointClient:
        return EndpointClient(self.endpoint, self._timeout, api_key)

    def _connect(self, api_key: str) -> Client:
        """The SDK's client, over `_http`."""
        raise NotImplementedError

    async def complete(self, request: Request) -> Completion:
        """Answer one request with one attempt.

        Raises:
            CallError: timeout, connection, rate_limit, overloaded, server_error, bad_request or
                bad_response.
            ProviderRefusedError: every call would fail.
        """
        # What an SDK raises holds the request, with its key and its text. It is read inside its
        # handler and told outside of it, so that no `__context__` keeps it alive.
        try:
            async with asyncio.timeout(self._timeout):
                outcome = await self._ask(request)
        except TimeoutError:
            outcome = CallError("timeout")
        if isinstance(outcome, Completion):
            return outcome
        raise outcome

    async def _ask(self, request: Request) -> Outcome:
        """Make the call; what the SDK raises is returned as what it means."""
        raise NotImplementedError


def check_key(provider: str, key: str) -> None:
    """Refuse a key that no HTTP header may hold, without showing it.

    Args:
        provider: whose key it is.
        key: as it came from the environment.

    Raises:
        PiiBenchError: the key is empty or not printable ASCII without spaces.
    """
    if not re.fullmatch(r"[!-~]+", key):
        raise PiiBenchError(
            f"the key for provider {provider!r} is empty or holds a character other than "
            "printable ASCII (often a line break at its end)"
        )


def turns(request: Request) -> list[dict[str, str]]:
    """The turns of a chat, as every protocol writes them.

    Half a surrogate pair, which UTF-8 cannot hold and no SDK sends, becomes U+FFFD.
    """
    return [
        {
            "role": turn.role,
            "content": turn.content.encode("utf-16", "surrogatepass").decode("utf-16", "replace"),
        }
        for turn in request.messages
    ]


def parse_json(content: bytes | str) -> object:
    """The JSON of an answer; None where it is none, or `null`: no service answers so."""
    try:
        body: object = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return body


def attempt(read: Callable[[object], Completion], body: object) -> Outcome:
    """What an adapter reads in an answer, or why it cannot."""
    try:
        return read(body)
    except CallError as error:
        return error


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that a server asks to wait.

    Args:
        headers: of its answer, by lower-case name.

    Returns:
        What `retry-after-ms` says, else `Retry-After` (RFC 9110, 10.2.3: seconds or a
        date; a date in the past is 0); None where neither is a time.
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
    """The first value that can only be a provider's short code; empty if none is.

    Letters, `_`, `.` and `-`: a key has digits, a text has spaces, and a number says less
    than the HTTP status does.
    """
    for value in values:
        if isinstance(value, str) and re.fullmatch(r"[A-Za-z_.-]{1,64}", value):
            return value
    return ""


def failure_kind(status: int) -> str:
    """The kind of a failed call by its HTTP status, where nothing else is known of it."""
    if status >= 500:
        return "server_error"
    return {408: "timeout", 429: "rate_limit"}.get(status, "bad_request")


def refusal(provider: str, model: str, detail: str, remedy: str) -> ProviderRefusedError:
    """The error that stops a run whose every call would be refused."""
    return ProviderRefusedError(
        f"provider {provider!r} refuses model {model!r}: {detail}: {remedy}"
    )
