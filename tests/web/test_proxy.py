"""The proxy, between OpenAI's client and a server with its protocol."""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import openai
import pytest

from pii_bench.errors import MissingKeyError, UnknownNameError
from pii_bench.web.app import create_app
from pii_bench.web.settings import Settings
from tests.protocol_server import ProtocolServer, Reply, api_error, completion
from tests.web.server import Server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


MAIL = "a.lee@mail.example.org"
PROMPT = f"I am Ann Lee and 32 years old. My address is {MAIL}. How old am I?"


@pytest.fixture
def protocol_server() -> Iterator[ProtocolServer]:
    with ProtocolServer() as server:
        yield server


@pytest.fixture
def proxy(
    tmp_path: Path, protocol_server: ProtocolServer, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Server]:
    monkeypatch.setenv("PII_BENCH_API_KEY", "sk-upstream")
    settings = Settings(
        database=str(tmp_path / "web.sqlite"), workers=0, upstream=f"{protocol_server.url}/v1"
    )
    with ExitStack() as stack:
        yield Server(settings, stack)


def client(proxy: Server) -> openai.OpenAI:
    """Return OpenAI's client with the proxy as its base URL."""
    return openai.OpenAI(
        api_key="sk-of-the-client",
        base_url="http://localhost/v1",
        http_client=proxy.program(),
        max_retries=0,
    )


def ask(proxy: Server) -> str | None:
    messages: Any = [{"role": "user", "content": PROMPT}]
    answer = client(proxy).chat.completions.create(model="m", messages=messages)
    return answer.choices[0].message.content


def ask_for_stream(proxy: Server) -> str:
    """Return the text of a streamed answer to OpenAI's client."""
    stream = client(proxy).chat.completions.create(
        model="m", messages=[{"role": "user", "content": PROMPT}], stream=True
    )
    return "".join(each.choices[0].delta.content or "" for each in stream)


def events(*chunks: object) -> Reply:
    lines = [f"data: {json.dumps(each)}\n\n" for each in chunks]
    body = "".join([*lines, "data: [DONE]\n\n"]).encode()
    return Reply(body=body, headers={"Content-Type": "text/event-stream"})


def chunk(text: str, finish: str | None = None) -> dict[str, object]:
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": finish}
    return {"id": "1", "object": "chat.completion.chunk", "model": "m", "choices": [choice]}


def test_the_provider_receives_tags_and_our_key_and_the_client_the_original_values(
    proxy: Server, protocol_server: ProtocolServer
) -> None:
    protocol_server.script(completion("You are 32, <Full Name>; I wrote to <email address>."))

    assert ask(proxy) == f"You are 32, Ann Lee; I wrote to {MAIL}."

    (request,) = protocol_server.requests
    assert request.path == "/v1/chat/completions"
    assert request.headers["authorization"] == "Bearer sk-upstream"
    assert "sk-of-the-client" not in repr(request)
    (message,) = request.body["messages"]
    assert MAIL not in json.dumps(request.body)
    assert "Ann Lee" not in json.dumps(request.body)
    assert "32 years old" in message["content"]


def test_half_a_surrogate_pair_becomes_a_replacement_character(
    proxy: Server, protocol_server: ProtocolServer
) -> None:
    protocol_server.script(completion("Hello <Full Name>."))
    prompt = "I am Ann Lee \ud83d. How old am I?"
    # OpenAI's client refuses it; other clients send its JSON escape.
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": prompt}]})

    answer = proxy.program().post("/v1/chat/completions", content=body)

    assert answer.json()["choices"][0]["message"]["content"] == "Hello Ann Lee."
    (request,) = protocol_server.requests
    (message,) = request.body["messages"]
    assert message["content"] == "I am <Full Name> \ufffd. How old am I?"


def test_a_stream_is_unmasked_where_tags_are_split(
    proxy: Server, protocol_server: ProtocolServer
) -> None:
    answer = "Dear <Full Name>, you are 32. [Email Address]! &lt;Email Address&gt;"
    pieces = [answer[at : at + 5] for at in range(0, len(answer), 5)]
    # Each byte on its own: chunks are split too.
    protocol_server.script(replace(events(*map(chunk, pieces), chunk("", "stop")), trickle=2e-4))

    assert ask_for_stream(proxy) == f"Dear Ann Lee, you are 32. {MAIL}! {MAIL}"


def test_a_stream_without_a_finish_reason_arrives_whole(
    proxy: Server, protocol_server: ProtocolServer
) -> None:
    protocol_server.script(events(chunk("Is 3 < 4")))

    assert ask_for_stream(proxy) == "Is 3 < 4"


@pytest.mark.parametrize(
    ("body", "what"),
    [
        (f"data: {json.dumps(chunk('Dear <Full'))}\n\n".encode(), "broke off"),
        (b"data: " + b"[" * 100_000 + b"\n\n", "no chat completion"),
    ],
)
def test_a_stream_that_cannot_be_read_ends_with_an_error(
    proxy: Server, protocol_server: ProtocolServer, body: bytes, what: str
) -> None:
    protocol_server.script(Reply(body=body))

    answer = proxy.program().post(
        "/v1/chat/completions",
        json={"model": "m", "stream": True, "messages": [{"role": "user", "content": PROMPT}]},
    )

    assert what in answer.text
    assert "[DONE]" not in answer.text


@pytest.mark.parametrize(
    ("reply", "status", "what"),
    [
        (api_error(429, "rate_limit_exceeded", headers={"retry-after": "7"}), 429, "rate_limit"),
        (api_error(400, "context_length_exceeded"), 400, "context_length"),
        # Its 401 is about our key, not about the client's.
        (api_error(401, "invalid_api_key", message=f"wrong: {MAIL}"), 502, "invalid_api_key"),
        (Reply(status=500, body=b"<html>"), 500, "answered 500"),
        (Reply(body=b"<html>"), 502, "no chat completion"),
        (Reply(body=[]), 502, "no chat completion"),
        (Reply(body=b"[" * 100_000), 502, "no chat completion"),
        (Reply(status=500, body=b"[" * 100_000), 500, "answered 500"),
        (Reply(reset=True), 502, "cannot be reached"),
    ],
)
def test_a_providers_error_is_reported_without_its_message(
    proxy: Server, protocol_server: ProtocolServer, reply: Reply, status: int, what: str
) -> None:
    protocol_server.script(reply)

    with pytest.raises(openai.APIStatusError) as caught:
        ask(proxy)

    assert caught.value.status_code == status
    assert what in caught.value.message
    assert MAIL not in caught.value.message
    assert caught.value.response.headers.get("retry-after") == reply.headers.get("retry-after")


def test_a_request_that_cannot_be_masked_is_not_forwarded(
    proxy: Server, protocol_server: ProtocolServer
) -> None:
    protocol_server.script(completion("x"))
    program = proxy.program()
    picture = [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]

    for body, status in (
        (b"{", 400),
        (b"[]", 400),
        (json.dumps({"messages": [{"role": "user", "content": picture}]}).encode(), 400),
        (b'{"messages": [{"role": "user", "content": "x"}], "temperature": NaN}', 400),
        (b'{"messages": [{"role": "user", "content": "x"}], "seed": 1e999}', 400),
        (json.dumps({"messages": [{"role": "user", "content": "x" * 60_000}]}).encode(), 413),
    ):
        assert program.post("/v1/chat/completions", content=body).status_code == status
    assert protocol_server.requests == []


@pytest.mark.parametrize("levels", [600, 100_000])
def test_a_request_that_is_nested_too_deeply_is_told_so(proxy: Server, levels: int) -> None:
    body = b'{"tools": %s%s}' % (b"[" * levels, b"]" * levels)

    answer = proxy.program().post("/v1/chat/completions", content=body)

    assert answer.status_code == 400
    assert answer.json() == {"error": {"message": "The body is nested too deeply."}}


def test_without_a_provider_there_is_no_proxy(local: Server) -> None:
    body = {"messages": [{"role": "user", "content": "x"}]}
    answer = local.program().post("/v1/chat/completions", json=body)

    assert answer.status_code == 503
    assert "--upstream" in answer.json()["error"]["message"]


def test_the_list_of_models_is_the_providers(
    proxy: Server, protocol_server: ProtocolServer
) -> None:
    protocol_server.script(Reply(body={"data": [{"id": "m"}]}))

    assert proxy.program().get("/v1/models").json() == {"data": [{"id": "m"}]}
    assert [request.path for request in protocol_server.requests] == ["/v1/models"]


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (Reply(status=401, body={"error": {}}), "The provider answered 401."),
        (Reply(status=403, body=b"<html>"), "The provider answered 403."),
        (Reply(body=b"<html>"), "The provider's answer is not JSON."),
        (Reply(body=b"[" * 100_000), "The provider's answer is not JSON."),
        (Reply(reset=True), "The provider cannot be reached."),
    ],
)
def test_without_a_list_of_models_the_reason_is_told(
    proxy: Server, protocol_server: ProtocolServer, reply: Reply, reason: str
) -> None:
    protocol_server.script(reply)

    answer = proxy.program().get("/v1/models")

    assert answer.status_code == 502
    assert answer.json() == {"error": {"message": reason}}


@pytest.mark.parametrize(
    ("upstream", "error"),
    [("openai", MissingKeyError), ("opanai", UnknownNameError), ("anthropic", UnknownNameError)],
)
def test_an_unusable_provider_is_refused_at_the_start(
    upstream: str, error: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(error):
        create_app(Settings(database=str(tmp_path / "web.sqlite"), upstream=upstream))
