from __future__ import annotations

import asyncio

import httpx2
import pytest

from pii_bench.errors import PiiBenchError
from pii_bench.models.base import CallError
from pii_bench.models.service import (
    BodyTooLargeError,
    EndpointClient,
    check_key,
    connection_failure,
)

KEY = "sk-planted-key-0123456789"


@pytest.mark.parametrize(
    ("endpoint", "trusts"),
    [("http://127.0.0.1:8000", False), ("http://localhost", False), ("https://a.example", True)],
)
def test_a_proxy_of_the_environment_is_asked_for_no_loopback(endpoint: str, trusts: bool) -> None:
    client = EndpointClient(endpoint, 5.0, KEY)
    asyncio.run(client.aclose())
    assert client.trust_env is trusts


@pytest.mark.parametrize(("timeout", "connect"), [(120.0, 10.0), (3.0, 3.0)])
def test_connecting_takes_at_most_ten_seconds(timeout: float, connect: float) -> None:
    client = EndpointClient("https://a.example", timeout, KEY)
    asyncio.run(client.aclose())
    assert (client.timeout.read, client.timeout.connect) == (timeout, connect)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (httpx2.ConnectError(""), "connection"),
        # So does the aiohttp client of openai tell a refused connection.
        (httpx2.ConnectTimeout(""), "connection"),
        (httpx2.ReadError(""), "connection"),
        (httpx2.RemoteProtocolError(""), "connection"),
        (None, "connection"),
        (httpx2.ReadTimeout(""), "timeout"),
        (httpx2.PoolTimeout(""), "timeout"),
        (BodyTooLargeError(""), "bad_response: more than 32 MB"),
        (httpx2.DecodingError(""), "bad_response: cannot be decompressed"),
    ],
)
def test_why_no_answer_came(error: Exception | None, told: str) -> None:
    failure = connection_failure(error)
    assert isinstance(failure, CallError)
    assert str(failure) == told


def test_a_key_of_printable_ascii_is_taken() -> None:
    check_key("openai", "!sk-Az09_~")


@pytest.mark.parametrize(
    "key",
    [
        "",
        f"{KEY}\n",
        f"{KEY} ",
        f"{KEY}\x7f",
        f"\N{LEFT DOUBLE QUOTATION MARK}{KEY}",
        f"Bearer {KEY}",
    ],
)
def test_a_key_that_no_header_may_hold_is_refused_unseen(key: str) -> None:
    with pytest.raises(PiiBenchError, match="the key for provider 'mistral' is empty") as caught:
        check_key("mistral", key)
    assert KEY not in str(caught.value)
