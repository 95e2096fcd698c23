from __future__ import annotations

import asyncio
import gzip
import socket
from typing import TYPE_CHECKING, TypeVar

import httpx2
import pytest

from pii_bench.models.openai_transport import EndpointClient
from tests.protocol_server import HANG, RESET, ProtocolServer, Reply

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
    from pathlib import Path

Result = TypeVar("Result")


@pytest.fixture
def server() -> Iterator[ProtocolServer]:
    with ProtocolServer() as server:
        server.script(Reply(body={"said": "hello"}))
        yield server


def use(
    endpoint: str, job: Callable[[EndpointClient], Awaitable[Result]], *, timeout: float = 5.0
) -> Result:
    async def run() -> Result:
        client = EndpointClient(endpoint, timeout)
        try:
            return await job(client)
        finally:
            await client.aclose()

    return asyncio.run(run())


def post(endpoint: str, *, timeout: float = 5.0) -> httpx2.Response:
    return use(endpoint, lambda client: client.post(endpoint, content=b"{}"), timeout=timeout)


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


async def two_pieces() -> AsyncIterator[bytes]:
    yield b"["
    yield b"]"


class TestAnswers:
    def test_status_headers_and_content(self, server: ProtocolServer) -> None:
        server.script(Reply(status=418, body={"said": "no"}, headers={"Retry-After": "7"}))
        answer = post(server.url)
        assert (answer.status_code, answer.json()) == (418, {"said": "no"})
        assert answer.headers["retry-after"] == "7"
        assert str(answer.request.url) == server.url

    def test_a_compressed_answer_is_read(self, server: ProtocolServer) -> None:
        packed = gzip.compress(b'{"said": "packed"}')
        server.script(Reply(body=packed, headers={"Content-Encoding": "gzip"}))
        assert post(server.url).json() == {"said": "packed"}
        assert server.requests[0].headers["accept-encoding"] == "gzip, deflate"

    def test_more_requests_at_a_time_than_a_pool_holds(self, server: ProtocolServer) -> None:
        server.script(Reply(body={}, delay=0.4))

        async def ask_all(client: EndpointClient) -> None:
            posts = [client.post(server.url, content=b"{}") for _ in range(120)]
            await asyncio.gather(*posts)

        use(server.url, ask_all)
        assert server.peak == 120

    def test_a_redirect_is_not_followed(self, server: ProtocolServer) -> None:
        server.script(Reply(status=307, headers={"Location": f"{server.url}/elsewhere"}))
        assert post(server.url).status_code == 307
        assert len(server.requests) == 1

    def test_cookies_do_not_come_back(self, server: ProtocolServer) -> None:
        server.script(Reply(body={}, headers={"Set-Cookie": "session=1"}))

        async def twice(client: EndpointClient) -> None:
            for _ in range(2):
                await client.post(server.url, content=b"{}")

        use(server.url, twice)
        assert "cookie" not in server.requests[1].headers


class TestFailures:
    def test_nobody_listens(self) -> None:
        with pytest.raises(httpx2.NetworkError):
            post(f"http://127.0.0.1:{free_port()}")

    def test_the_connection_breaks(self, server: ProtocolServer) -> None:
        server.script(RESET)
        with pytest.raises(httpx2.NetworkError):
            post(server.url)
        assert len(server.requests) == 1

    @pytest.mark.parametrize("slow", [HANG, Reply(body={"said": "word by word"}, trickle=0.02)])
    def test_the_last_byte_comes_too_late(self, server: ProtocolServer, slow: Reply) -> None:
        server.script(slow)
        with pytest.raises(httpx2.TimeoutException):
            post(server.url, timeout=0.1)

    def test_a_broken_compression(self, server: ProtocolServer) -> None:
        server.script(Reply(body=b"no gzip", headers={"Content-Encoding": "gzip"}))
        with pytest.raises(httpx2.DecodingError):
            post(server.url)


class TestOtherWays:
    def test_a_stream_is_read_piece_by_piece(self, server: ProtocolServer) -> None:
        async def read(client: EndpointClient) -> bytes:
            async with client.stream("POST", server.url, content=b"{}") as answer:
                return b"".join([piece async for piece in answer.aiter_bytes()])

        assert use(server.url, read) == b'{"said": "hello"}'

    def test_an_upload_of_several_pieces(self, server: ProtocolServer) -> None:
        length = {"Content-Length": "2"}
        answer = use(
            server.url,
            lambda client: client.post(server.url, content=two_pieces(), headers=length),
        )
        assert answer.json() == {"said": "hello"}
        assert server.requests[0].body == []

    def test_parameters_of_a_url(self, server: ProtocolServer) -> None:
        use(
            server.url,
            lambda client: client.post(f"{server.url}/a", content=b"{}", params={"limit": 2}),
        )
        assert server.requests[0].path == "/a?limit=2"

    def test_closing_twice_is_harmless(self, server: ProtocolServer) -> None:
        async def close(client: EndpointClient) -> None:
            await client.post(server.url, content=b"{}")
            await client.aclose()

        use(server.url, close)


class TestProxies:
    @pytest.fixture(autouse=True)
    def _no_exceptions(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)

    def test_a_proxy_of_the_environment_is_asked(
        self, server: ProtocolServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("HTTP_PROXY", server.url)
        assert post("http://model.example/v1").json() == {"said": "hello"}
        assert server.requests[0].path == "http://model.example/v1"

    def test_but_not_where_the_environment_excepts_the_endpoint(
        self, server: ProtocolServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("HTTP_PROXY", server.url)
        monkeypatch.setenv("NO_PROXY", ".invalid")
        with pytest.raises(httpx2.NetworkError):
            post("http://model.invalid")
        assert server.requests == []

    def test_and_never_for_the_loopback(
        self, server: ProtocolServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{free_port()}")
        assert post(server.url).json() == {"said": "hello"}


def test_the_authorities_are_loaded_where_tls_is_spoken(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "absent.pem"))
    EndpointClient("http://model.example", 1.0)
    with pytest.raises(FileNotFoundError):
        EndpointClient("https://model.example", 1.0)
