"""Where messages go: base URLs in the one form that results name."""

from __future__ import annotations

import ipaddress
import re
from typing import Final
from urllib.parse import urlsplit

from pii_bench.errors import PiiBenchError

_HOST: Final = re.compile(r"(?=.{1,253}$)([a-z0-9_-]{1,63}\.)*[a-z0-9_-]{1,63}\.?")


def normalise_base_url(url: str) -> str:
    """Bring a base URL into the one form that results name.

    Args:
        url: such as `http://localhost:8000/v1/`.

    Returns:
        The URL with a lower-case scheme and host and without a slash at its end.

    Raises:
        PiiBenchError: no http(s) URL with a host of ASCII, or one with user information, a
            query or a fragment. The URL is never quoted: it may hold a key.
    """
    import httpx2

    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise PiiBenchError("base URL: host or port is not valid") from None
    if parts.scheme not in {"http", "https"}:
        raise PiiBenchError("base URL must start with http:// or https://")
    if "@" in parts.netloc:
        raise PiiBenchError(
            "base URL holds user information (user:password@): results name the base URL; "
            "put the key into the provider's variable"
        )
    if "?" in url or "#" in url:
        raise PiiBenchError(
            "base URL has a query or a fragment (`?`, `#`): results name the base URL; "
            "put the key into the provider's variable"
        )
    host = parts.hostname or ""
    if not host.isascii():
        # Clients read some letters as others: `\u24dbocalhost` is `localhost` to them.
        raise PiiBenchError("base URL: the host must be ASCII: write other letters as `xn--...`")
    if "[" in parts.netloc:
        host = f"[{host}]"
    elif not _HOST.fullmatch(host):
        raise PiiBenchError("base URL names no valid host")
    netloc = host if port is None else f"{host}:{port}"
    normal = f"{parts.scheme}://{netloc}{parts.path.rstrip('/')}"
    try:
        httpx2.URL(normal)
    except httpx2.InvalidURL:
        raise PiiBenchError("base URL is not valid: address, length or control character") from None
    return normal


def is_loopback(endpoint: str) -> bool:
    """Whether a URL's host is this machine: `localhost` or a loopback address."""
    host = urlsplit(endpoint).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
