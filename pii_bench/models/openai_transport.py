"""The connections under the SDK: an `httpx2` client whose plain requests go through aiohttp.

Two hundred calls at a time cost `httpx2` 3 ms of CPU each (2.16.2), aiohttp a third of one.
The SDK's own aiohttp client is not used: it reports a refused connection as a timeout, and
copies every URL and header several times.
"""

from __future__ import annotations

import urllib.request
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import aiohttp
import httpx2

from pii_bench.models.endpoints import is_loopback
from pii_bench.models.transport import no_certificates

if TYPE_CHECKING:
    import ssl
    from collections.abc import Mapping

_CONNECT_SECONDS: Final = 10.0

# What `httpx2` can read back.
_ENCODINGS: Final[Mapping[str, str]] = {"Accept-Encoding": "gzip, deflate"}


class EndpointClient(httpx2.AsyncClient):
    """Connections to one endpoint, without redirects, cookies or a limit on their number.

    Streams, uploads from files, and all requests where the environment names a proxy for
    the endpoint, go the way of `httpx2`. A proxy is never asked for the loopback.

    Args:
        endpoint: the base URL.
        timeout: seconds that one request may take from connecting to its last byte; of
            what goes the way of `httpx2`, seconds without a byte.
    """

    def __init__(self, endpoint: str, timeout: float) -> None:
        connect = min(timeout, _CONNECT_SECONDS)
        self._direct = not _is_proxied(endpoint)
        plain = self._direct and endpoint.startswith("http:")
        self._context = no_certificates() if plain else httpx2.create_ssl_context()
        self._limits = aiohttp.ClientTimeout(total=timeout, sock_connect=connect)
        self._session: aiohttp.ClientSession | None = None
        self._urls: dict[str, httpx2.URL] = {}
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=None)
        super().__init__(
            verify=self._context,
            timeout=httpx2.Timeout(timeout, connect=connect),
            limits=limits,
            transport=_SeldomUsed(self._context, limits) if self._direct else None,
            follow_redirects=False,
            trust_env=not self._direct,
        )

    def build_request(self, method: str, url: httpx2.URL | str, **parts: Any) -> httpx2.Request:
        """Make a request; one of bytes alone is made without merging the client's defaults."""
        content = parts.get("content")
        if not isinstance(content, bytes) or parts.get("params") or parts.get("files"):
            return super().build_request(method, url, **parts)
        text = str(url)
        if text not in self._urls:
            self._urls[text] = httpx2.URL(text)
        return httpx2.Request(
            method, self._urls[text], headers=parts.get("headers"), content=content
        )

    async def send(
        self, request: httpx2.Request, *, stream: bool = False, **options: Any
    ) -> httpx2.Response:
        """Send a request once and read the whole answer.

        Raises:
            httpx2.TimeoutException: the answer did not come in time.
            httpx2.NetworkError: there is no connection, or it broke.
        """
        special = any(option is not httpx2.USE_CLIENT_DEFAULT for option in options.values())
        if stream or special or not self._direct or not _is_whole(request):
            return await super().send(request, stream=stream, **options)
        try:
            async with self._open_session().request(
                request.method,
                str(request.url),
                headers=request.headers,
                data=request.content,
                allow_redirects=False,
            ) as answer:
                content = await answer.read()
        except TimeoutError as error:
            raise httpx2.ReadTimeout("no answer in time", request=request) from error
        except (aiohttp.ClientError, OSError) as error:
            raise httpx2.NetworkError("no connection", request=request) from error
        return httpx2.Response(
            answer.status, headers=answer.raw_headers, content=content, request=request
        )

    async def aclose(self) -> None:
        """Close the connections; closing twice is harmless."""
        if self._session is not None:
            await self._session.close()
        await super().aclose()

    def _open_session(self) -> aiohttp.ClientSession:
        # Not in __init__: a session belongs to the running loop.
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, ssl=self._context),
                cookie_jar=aiohttp.DummyCookieJar(),
                headers=_ENCODINGS,
                timeout=self._limits,
                auto_decompress=False,
            )
        return self._session


class _SeldomUsed(httpx2.AsyncBaseTransport):
    """The connections of `httpx2`, made with the first request: its import takes 15 ms."""

    def __init__(self, context: ssl.SSLContext, limits: httpx2.Limits) -> None:
        self._context, self._limits = context, limits
        self._made: httpx2.AsyncHTTPTransport | None = None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if self._made is None:
            self._made = httpx2.AsyncHTTPTransport(verify=self._context, limits=self._limits)
        return await self._made.handle_async_request(request)

    async def aclose(self) -> None:
        if self._made is not None:
            await self._made.aclose()


def _is_whole(request: httpx2.Request) -> bool:
    return isinstance(request.stream, httpx2.ByteStream)


def _is_proxied(endpoint: str) -> bool:
    if is_loopback(endpoint):
        return False
    parts, proxies = urlsplit(endpoint), urllib.request.getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    return bool(proxy) and not urllib.request.proxy_bypass(parts.netloc)
