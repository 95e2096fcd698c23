"""The contract of every adapter: the same cases against local servers."""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
import traceback
import tracemalloc
import zlib
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

from pii_bench.errors import ProviderRefusedError, ProviderUnavailableError
from pii_bench.models.base import CallError, Completion, Finish, Message, Usage
from pii_bench.models.service import LARGEST_BODY
from tests.models.adapters import (
    KEY,
    REQUEST,
    SAMPLE_TEXT,
    SCHEMA,
    SERVICES,
    Adapter,
    Asker,
    ask,
    failure_of,
)
from tests.protocol_server import HANG, RESET, ProtocolServer, Reply

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


# A number too large for a float, and one that Python refuses to parse.
GIANT, ENDLESS = 10**400, b"1" * 5000


@pytest.fixture(params=SERVICES)
def adapter(request: pytest.FixtureRequest) -> Adapter:
    return SERVICES[request.param]


class TestAnswers:
    def test_a_complete_answer(self, adapter: Adapter, ask: Asker) -> None:
        assert ask(adapter.dialect.answer(" raw text\n")) == Completion(
            " raw text\n", Finish.STOP, model="scripted-model", usage=Usage(11, 7)
        )

    def test_the_reason_why_it_ended(self, adapter: Adapter, ask: Asker) -> None:
        ends = adapter.dialect.ends
        assert ask.outcomes(map(adapter.dialect.ended, ends)) == [
            Completion("part", finish, model="scripted-model", usage=Usage(11, 7))
            for finish in ends.values()
        ]

    def test_an_empty_answer(self, adapter: Adapter, ask: Asker) -> None:
        answer = ask(adapter.dialect.empty)
        assert (answer.text, answer.finish) == ("", Finish.STOP)

    def test_reasoning_is_not_part_of_the_text(self, adapter: Adapter, ask: Asker) -> None:
        answer = ask(adapter.dialect.reasoned)
        assert (answer.text, answer.reasoning) == ("Halifax", "A place.")

    def test_requests_are_concurrent(
        self, adapter: Adapter, ask: Asker, server: ProtocolServer
    ) -> None:
        ask(replace(adapter.dialect.answer("hello"), delay=0.2), times=4)
        assert server.peak == 4

    def test_a_lone_surrogate_is_sent_as_a_replacement_character(
        self, adapter: Adapter, ask: Asker, server: ProtocolServer
    ) -> None:
        messages = (Message("user", "café \ud83d"),)
        ask(adapter.dialect.answer("hello"), request=replace(REQUEST, messages=messages))
        assert server.requests[0].body["messages"][0]["content"] == "café \N{REPLACEMENT CHARACTER}"

    @pytest.mark.parametrize(
        "text", ["小满 \N{GRINNING FACE} \x00\x7f\u2028", "\ud83d", "<think>A</think>B"]
    )
    def test_texts_are_not_changed(self, adapter: Adapter, ask: Asker, text: str) -> None:
        assert ask(adapter.dialect.answer(text)).text == text


class TestUsage:
    def test_the_input_includes_the_cached_input(self, adapter: Adapter, ask: Asker) -> None:
        assert ask(adapter.dialect.cached(5)).usage == Usage(11, 7, cached_tokens=5)

    def test_without_counts_or_with_impossible_ones_it_is_unknown(
        self, adapter: Adapter, ask: Asker
    ) -> None:
        # One of each JSON type; the tests of `Completion` have all impossible counts.
        pairs: list[tuple[object, object]] = [
            (11, -1),
            (GIANT, 7),
            (11.5, 7),
            ("many", 7),
            (None, None),
            ([11], {}),
        ]
        replies = [adapter.dialect.uncounted, *(adapter.dialect.counted(*pair) for pair in pairs)]
        unknown = Completion("Halifax", Finish.STOP, model="scripted-model", usage=None)
        assert ask.outcomes(replies) == [unknown] * len(replies)

    def test_a_boolean_is_not_a_count(self, adapter: Adapter, ask: Asker) -> None:
        usage = ask(adapter.dialect.counted(True, 7)).usage
        # Mistral's SDK has already turned `true` into 1.
        assert usage == (Usage(1, 7) if adapter.name == "mistral" else None)

    def test_impossible_cached_input_does_not_make_a_call_cheaper(
        self, adapter: Adapter, ask: Asker
    ) -> None:
        impossible = (-5, 12, GIANT, "some", None)
        for answer in ask.outcomes(adapter.dialect.cached(cached) for cached in impossible):
            assert isinstance(answer, Completion)
            usage = answer.usage
            # Unknown usage counts as the most that a call may cost.
            assert usage is None or (usage.input_tokens >= 11 and usage.cached_tokens == 0)


class TestFailures:
    def test_the_status_determines_the_kind_and_there_is_one_attempt(
        self, adapter: Adapter, ask: Asker, server: ProtocolServer
    ) -> None:
        kinds = {
            400: "bad_request",
            408: "timeout",
            413: "bad_request",
            429: "rate_limit",
            500: "server_error",
            502: "server_error",
            # Mistral's API does not have this one.
            529: "server_error" if adapter.name == "mistral" else "overloaded",
        }
        error = adapter.dialect.error
        failures = ask.failures(error(status, "some_code") for status in kinds)
        assert failures == [f"{kind}: HTTP {status} some_code" for status, kind in kinds.items()]
        assert len(server.requests) == len(kinds)

    def test_they_have_the_wait_of_the_server(self, adapter: Adapter, ask: Asker) -> None:
        error = adapter.dialect.error
        failures = ask.failures(
            error(each, "a", headers={"Retry-After": "7"}) for each in (429, 500)
        )
        assert failures == ["rate_limit: HTTP 429 a 7.0", "server_error: HTTP 500 a 7.0"]

    def test_the_body_may_be_anything(self, ask: Asker) -> None:
        bodies: list[object] = [b"", b"slow down", b"<html>"]
        oddities: list[object] = [None, [], {}, True, GIANT, [["a"]], {"a": []}, "\ud83d"]
        for odd in oddities:
            bodies += [
                odd,
                {"error": odd},
                {"detail": odd, "message": odd, "type": odd, "param": odd, "code": odd},
                {"error": {"type": odd, "message": odd, "code": odd, "param": odd}},
                {"error": {"type": "a", "details": {"error_code": odd}}},
                {"error": {"type": "a", "details": odd}},
                {"detail": [odd, {"loc": odd}, {"loc": [odd]}]},
            ]
        failures = ask.failures(Reply(status=400, body=body) for body in bodies)
        assert {failure.partition(":")[0] for failure in failures} == {"bad_request"}

    @pytest.mark.parametrize(
        ("status", "remedy"),
        [
            (401, "check the API key (with --base-url: PII_BENCH_API_KEY)"),
            (402, "the account has no credit"),
            (403, "the key may not use this model"),
            (404, "check the model's name and the base URL"),
        ],
    )
    def test_failures_of_every_call_are_refusals(
        self, adapter: Adapter, ask: Asker, server: ProtocolServer, status: int, remedy: str
    ) -> None:
        [refusal] = ask.outcomes([adapter.dialect.error(status, "some_code")])
        start = f"provider {adapter.name!r} refuses model 'model-test': HTTP {status} some_code: "
        assert str(refusal).startswith(start + remedy)
        # An account without credit may have some later.
        kind = ProviderUnavailableError if status == 402 else ProviderRefusedError
        assert type(refusal) is kind
        assert len(server.requests) == 1

    @pytest.mark.parametrize("status", [301, 307, 308])
    def test_a_redirect_is_not_followed(
        self, adapter: Adapter, ask: Asker, server: ProtocolServer, status: int
    ) -> None:
        with ProtocolServer() as elsewhere:
            place = {"Location": elsewhere.url + adapter.dialect.path}
            refusal = ask.failure(Reply(status=status, headers=place))
            assert f"HTTP {status}: the base URL redirects" in refusal
            assert (len(server.requests), elsewhere.requests) == (1, [])


class TestNoResponse:
    def test_within_the_timeout(self, ask: Asker) -> None:
        assert ask.failure(HANG, timeout=0.2) == "timeout"

    def test_complete_within_the_timeout(self, adapter: Adapter, ask: Asker) -> None:
        # Each byte arrives in time, but not all of them.
        slow = replace(adapter.dialect.answer("hello"), trickle=0.05)
        assert ask.failure(slow, timeout=0.3) == "timeout"

    @pytest.mark.parametrize("url", ["http://localhost:1", "http://model.invalid"])
    def test_from_a_closed_port_or_an_unknown_host(self, adapter: Adapter, url: str) -> None:
        assert str(failure_of(adapter.connect, url)) == "connection"

    def test_that_is_valid_http(self, ask: Asker) -> None:
        ok = b"HTTP/1.1 200 OK\r\n"
        replies = [
            RESET,
            Reply(raw=b"hello\r\n\r\n"),
            Reply(raw=ok + b"A: " + b"x" * 200_000 + b"\r\n\r\n{}"),
            Reply(raw=ok + b"Content-Length: 99\r\n\r\n{}"),
            Reply(raw=ok + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}"),
        ]
        assert ask.failures(replies) == ["connection"] * len(replies)


class TestResponsesOutsideTheProtocol:
    @pytest.mark.parametrize("kind", ["application/json", "text/html"])
    def test_are_bad_responses(self, ask: Asker, kind: str) -> None:
        bodies = (
            b"<html>",
            b'{"text": "\xff"}',
            b"null",
            b"[]",
            b"{}",
            b"[" * 100_000,
            b'{"a":' * 100_000,
            b'{"a":' * 200 + b"1" + b"}" * 200,
            b'{"usage": ' + ENDLESS + b"}",
            b'{"error": {"message": "overloaded"}}',
        )
        failures = ask.failures(Reply(raw=_response(kind, body)) for body in bodies)
        assert {failure.partition(":")[0] for failure in failures} == {"bad_response"}

    def test_a_wrong_content_type_is_ignored(self, adapter: Adapter, ask: Asker) -> None:
        body = json.dumps(adapter.dialect.answer("hello").body).encode()
        assert ask(Reply(raw=_response("text/plain", body))).text == "hello"


def _response(kind: str, body: bytes) -> bytes:
    """Return an HTTP response with a Content-Type."""
    return (
        b"HTTP/1.1 200 OK\r\nConnection: close\r\n"
        + f"Content-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        + body
    )


class TestLongResponses:
    def test_are_read_up_to_the_limit(self, adapter: Adapter, ask: Asker) -> None:
        text = "a" * (LARGEST_BODY - 2000)
        assert ask(adapter.dialect.answer(text), timeout=30).text == text

    @pytest.mark.parametrize(
        ("status", "encoding"), [(200, "gzip"), (200, "gzip, gzip"), (500, "deflate")]
    )
    def test_are_bad_responses_above_it_and_not_decompressed(
        self, ask: Asker, status: int, encoding: str
    ) -> None:
        bomb = Reply(status=status, body=_bomb(encoding), headers={"Content-Encoding": encoding})
        tracemalloc.start()
        try:
            error = ask.failure(bomb, timeout=30)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert error == "bad_response: more than 32 MB"
        assert peak < 3 * LARGEST_BODY

    @pytest.mark.parametrize("encoding", ["gzip", "deflate"])
    def test_compressed_ones_are_read(self, adapter: Adapter, ask: Asker, encoding: str) -> None:
        body = json.dumps(adapter.dialect.answer("hello").body).encode()
        compressed = gzip.compress(body) if encoding == "gzip" else zlib.compress(body)
        assert ask(Reply(body=compressed, headers={"Content-Encoding": encoding})).text == "hello"

    def test_broken_compression_is_a_bad_response(self, ask: Asker) -> None:
        broken = Reply(body=b"no gzip", headers={"Content-Encoding": "gzip"})
        assert ask.failure(broken) == "bad_response: cannot be decompressed"


@cache
def _bomb(encoding: str) -> bytes:
    """Return 200 MB of spaces, compressed."""
    compressor = zlib.compressobj(9, wbits=31 if "gzip" in encoding else 15)
    parts = [compressor.compress(b" " * 10**6) for _ in range(200)]
    data = b"".join(parts) + compressor.flush()
    return gzip.compress(data) if encoding == "gzip, gzip" else data


class TestWhatIsSent:
    @pytest.fixture(autouse=True)
    def planted(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        token = tmp_path / "token"
        token.write_text("planted-token")
        for name, value in {
            "ANTHROPIC_API_KEY": "planted-other",
            "ANTHROPIC_AUTH_TOKEN": "planted-other",
            "ANTHROPIC_BASE_URL": "http://127.0.0.1:9",
            "ANTHROPIC_CUSTOM_HEADERS": (
                "X-Mine: mine\nx-api-key: mine\nAnthropic-Beta: mine\nanthropic-version: mine"
            ),
            "ANTHROPIC_PROFILE": "mine",
            "ANTHROPIC_WORKSPACE_ID": "mine",
            "ANTHROPIC_LOG": "debug",
            "MISTRAL_API_KEY": "planted-other",
            "MISTRAL_SA_TOKEN_PATH": str(token),
            "MISTRAL_SERVER_URL": "http://127.0.0.1:9",
            "MISTRAL_DEBUG": "1",
            "OPENAI_API_KEY": "planted-other",
            "OPENAI_ADMIN_KEY": "planted-other",
            "OPENAI_BASE_URL": "http://127.0.0.1:9",
            "OPENAI_CUSTOM_HEADERS": "X-Mine: mine\nauthorization: Bearer mine\nCookie: mine",
            "OPENAI_ORG_ID": "mine",
            "OPENAI_PROJECT_ID": "mine",
            "OPENAI_LOG": "debug",
            # No proxy is used for this machine.
            "HTTP_PROXY": "http://127.0.0.1:9",
            "ALL_PROXY": "http://127.0.0.1:9",
        }.items():
            monkeypatch.setenv(name, value)
        monkeypatch.delenv("NO_PROXY", raising=False)

    def test_is_only_the_request_and_the_key(
        self, adapter: Adapter, ask: Asker, server: ProtocolServer
    ) -> None:
        ask(replace(adapter.dialect.answer("hello"), headers={"Set-Cookie": "a=1"}), times=2)

        for request in server.requests:
            assert (request.path, request.body) == (adapter.dialect.path, adapter.dialect.body)
            assert request.headers["content-type"] == "application/json"
            assert request.headers["authorization"] == f"Bearer {KEY}"
            assert request.headers.keys() <= {
                "accept",
                "accept-encoding",
                "anthropic-version",
                "authorization",
                "connection",
                "content-length",
                "content-type",
                "host",
                "user-agent",
                "x-stainless-raw-response",
            }
            sent = str(request.headers)
            assert "mine" not in sent
            assert "other" not in sent
            assert REQUEST.sample_id not in sent

    def test_includes_the_schema_of_the_answer(
        self, adapter: Adapter, ask: Asker, server: ProtocolServer
    ) -> None:
        ask(adapter.dialect.answer("hello"), request=replace(REQUEST, schema=SCHEMA))
        assert server.requests[0].body == {**adapter.dialect.body, **adapter.dialect.schema}

    def test_goes_through_a_proxy_to_other_machines(
        self, adapter: Adapter, server: ProtocolServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("HTTP_PROXY", server.url)
        server.script(adapter.dialect.answer("hello"))
        ask(adapter.connect, "http://models.example/gateway")
        url = f"http://models.example/gateway{adapter.dialect.path}"
        assert server.requests[0].path == url

    def test_is_not_logged(
        self, adapter: Adapter, ask: Asker, caplog: pytest.LogCaptureFixture
    ) -> None:
        for logger in ("", "anthropic", "openai", "mistralai", "httpx2", "aiohttp"):
            caplog.set_level(logging.DEBUG, logger=logger)
        ask(adapter.dialect.answer(SAMPLE_TEXT))
        ask.failure(adapter.dialect.error(500, "some_code", SAMPLE_TEXT))
        assert KEY not in caplog.text
        assert "Achebe" not in caplog.text


class TestPrivacy:
    @pytest.mark.parametrize(
        "make",
        [
            lambda error: error(400, SAMPLE_TEXT, f"{SAMPLE_TEXT} {KEY}"),
            lambda error: error(400, KEY, f"temperature {SAMPLE_TEXT} {KEY}"),
            lambda error: error(401, KEY, f"wrong key {KEY}"),
            lambda error: error(500, SAMPLE_TEXT, SAMPLE_TEXT),
            lambda _: Reply(status=307, headers={"Location": f"http://127.0.0.1:9/{KEY}"}),
            lambda _: Reply(body=f"{SAMPLE_TEXT} {KEY}".encode()),
            lambda _: Reply(body={"choices": [{"message": {"content": {"text": SAMPLE_TEXT}}}]}),
            lambda _: Reply(body={"content": [{"type": "text", "text": [SAMPLE_TEXT]}]}),
            lambda _: Reply(body=SAMPLE_TEXT.encode(), headers={"Content-Encoding": "gzip"}),
            lambda _: Reply(raw=f"HTTP/1.1 {SAMPLE_TEXT}\r\n\r\n".encode()),
            lambda _: RESET,
            lambda _: HANG,
        ],
        ids=range(12),
    )
    def test_no_failure_contains_the_key_or_the_text(
        self, adapter: Adapter, server: ProtocolServer, make: Callable[[Any], Reply]
    ) -> None:
        server.script(make(adapter.dialect.error))
        with pytest.raises((CallError, ProviderRefusedError)) as caught:
            ask(adapter.connect, server.url, timeout=0.3)
        shown = "".join(traceback.format_exception(caught.value))
        assert KEY not in shown
        assert "Achebe" not in shown
        # An SDK's exception contains the request, and would keep it alive.
        assert caught.value.__cause__ is None
        assert caught.value.__context__ is None


def test_a_closed_model_answers_again_in_another_event_loop(
    adapter: Adapter, server: ProtocolServer
) -> None:
    model = adapter.connect(server.url, 5.0)
    server.script(adapter.dialect.answer("hello"))

    async def run() -> str:
        answer = await model.complete(REQUEST)
        await model.close()
        return answer.text

    assert [asyncio.run(run()) for _ in range(2)] == ["hello", "hello"]


def test_closing_leaves_no_connection_open(adapter: Adapter, server: ProtocolServer) -> None:
    async def run() -> int:
        model = adapter.connect(server.url, 5.0)
        await asyncio.gather(*[model.complete(REQUEST) for _ in range(3)])
        await model.close()
        await model.close()
        return len(asyncio.all_tasks())

    server.script(adapter.dialect.answer("hello"))
    assert asyncio.run(run()) == 1
