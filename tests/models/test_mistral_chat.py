from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pii_bench.errors import PiiBenchError
from pii_bench.models.base import (
    AnswerSchema,
    Completion,
    Finish,
    Request,
    Sampling,
    Usage,
)
from pii_bench.models.mistral_chat import MistralModel, request_body
from tests.mistral_replies import answer, answer_body, text_chunk, thinking_chunk
from tests.models.adapters import KEY, SERVICES
from tests.models.one_call import MESSAGES, REQUEST, SAMPLE_TEXT, Calls
from tests.protocol_server import ProtocolServer, Reply

calls = Calls(SERVICES["mistral"].connect)
ask, refusal_of = calls.ask, calls.refusal_of

MISTRAL = "https://api.mistral.ai"
SCHEMA = {
    "type": "object",
    "properties": {"answer": {"type": "array", "items": {"type": "string"}}},
    "required": ["answer"],
    "additionalProperties": False,
}


def request_with(sampling: Sampling, schema: AnswerSchema | None = None) -> Request:
    return Request("s1", "naive", MESSAGES, sampling, schema)


class TestRequest:
    def test_the_system_prompt_is_a_turn_and_the_bookkeeping_is_not_sent(
        self, server: ProtocolServer
    ) -> None:
        server.script(answer())
        ask(server.url)
        (request,) = server.requests
        assert request.path == "/v1/chat/completions"
        assert request.headers["authorization"] == f"Bearer {KEY}"
        assert request.headers["content-type"] == "application/json"
        assert request.body == {
            "model": "model-test",
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": SAMPLE_TEXT},
            ],
            "max_tokens": 321,
            "temperature": 0.0,
            "top_p": 1.0,
            "stream": False,
        }

    def test_a_call_sends_the_body_that_a_batch_would(self, server: ProtocolServer) -> None:
        server.script(answer())
        request = request_with(Sampling(0.7), AnswerSchema("answer", SCHEMA))
        ask(server.url, request)
        sent = request_body("model-test", request)
        assert server.requests[0].body == {**sent, "stream": False}

    def test_greedy_sampling_alone_sets_top_p(self) -> None:
        assert request_body("m", request_with(Sampling(0.0)))["top_p"] == 1.0
        assert "top_p" not in request_body("m", request_with(Sampling(0.7)))

    def test_no_temperature_is_sent_where_none_is_asked_for(self, server: ProtocolServer) -> None:
        server.script(answer())
        ask(server.url, request_with(Sampling(temperature=None)))
        assert not {"temperature", "top_p"} & set(server.requests[0].body)

    def test_a_schema_becomes_the_response_format(self, server: ProtocolServer) -> None:
        server.script(answer())
        ask(server.url, request_with(Sampling(), AnswerSchema("answer", SCHEMA)))
        assert server.requests[0].body["response_format"] == {
            "type": "json_schema",
            "json_schema": {"name": "answer", "schema": SCHEMA, "strict": True},
        }

    @pytest.mark.parametrize("path", ["", "/", "/v1", "/v1/"])
    def test_the_base_url_may_name_the_version(self, server: ProtocolServer, path: str) -> None:
        server.script(answer())
        ask(f"{server.url}{path}")
        assert server.requests[0].path == "/v1/chat/completions"


class TestEnvironment:
    @pytest.mark.parametrize("mode", ["dedicated", "global", "false"])
    def test_no_telemetry_is_sent_to_anyone(
        self, server: ProtocolServer, monkeypatch: pytest.MonkeyPatch, mode: str
    ) -> None:
        # Where it is heeded, `dedicated` asks for a package that is not installed.
        monkeypatch.setenv("MISTRAL_SDK_TELEMETRY", mode)
        monkeypatch.setenv("MISTRAL_OTLP_TRACES_ENDPOINT", server.url)
        server.script(answer())
        assert ask(server.url).text == "hello"
        assert [request.path for request in server.requests] == ["/v1/chat/completions"]
        assert "traceparent" not in server.requests[0].headers

    def test_a_mode_of_telemetry_that_the_sdk_does_not_know_is_told(
        self, server: ProtocolServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("MISTRAL_SDK_TELEMETRY", "of a later version")
        assert refusal_of(server.url).startswith(
            "provider 'mistral': Invalid MISTRAL_SDK_TELEMETRY"
        )
        assert server.requests == []


class TestAnswers:
    @pytest.mark.parametrize(
        ("reason", "finish"),
        [
            ("stop", Finish.STOP),
            ("length", Finish.LENGTH),
            ("model_length", Finish.LENGTH),
            ("tool_calls", Finish.UNKNOWN),
            ("of a later version", Finish.UNKNOWN),
        ],
    )
    def test_finish_reasons(self, server: ProtocolServer, reason: str, finish: Finish) -> None:
        server.script(answer("part", finish_reason=reason))
        completion = ask(server.url)
        assert (completion.text, completion.finish) == ("part", finish)

    @pytest.mark.parametrize("content", ["", None, []])
    def test_no_content_is_an_empty_answer(self, server: ProtocolServer, content: object) -> None:
        server.script(answer(content))
        completion = ask(server.url)
        assert (completion.text, completion.finish) == ("", Finish.STOP)

    def test_thinking_chunks_are_reasoning_and_no_part_of_the_text(
        self, server: ProtocolServer
    ) -> None:
        content = [thinking_chunk("First, ", "then."), text_chunk("Do"), text_chunk("ne")]
        server.script(answer(content))
        completion = ask(server.url)
        assert (completion.text, completion.reasoning) == ("Done", "First, then.")

    def test_chunks_of_other_kinds_are_left_out(self, server: ProtocolServer) -> None:
        later = {"type": "of a later version", "text": "no"}
        reference = {"type": "reference", "reference_ids": [1]}
        thinking = {"type": "thinking", "thinking": [reference, text_chunk("Hm.")]}
        server.script(answer([later, thinking, reference, text_chunk("Done")]))
        completion = ask(server.url)
        assert (completion.text, completion.reasoning) == ("Done", "Hm.")

    def test_tokens_that_came_from_a_cache_are_counted(self, server: ProtocolServer) -> None:
        usage = {"prompt_tokens": 801, "prompt_tokens_details": {"cached_tokens": 768}}
        server.script(answer(usage=usage))
        assert ask(server.url).usage == Usage(801, 7, reasoning_tokens=0, cached_tokens=768)

    def test_details_of_the_usage_may_be_null(self, server: ProtocolServer) -> None:
        server.script(answer(usage={"prompt_tokens_details": None}))
        assert ask(server.url).usage == Usage(11, 7)

    @pytest.mark.parametrize(
        "body",
        [
            {"choices": [{"message": {"content": "hello"}}]},
            {"choices": [{"message": {"content": "hello"}}], "usage": {}, "model": None},
            {**answer_body(), "usage": {}, "choices": [{"message": {"content": "hello"}}],
             "model": 1},
        ],
    )  # fmt: skip
    def test_an_answer_needs_no_more_than_a_message(
        self, server: ProtocolServer, body: dict[str, Any]
    ) -> None:
        server.script(Reply(body=body))
        assert ask(server.url) == Completion("hello", Finish.UNKNOWN)

    def test_usage_without_counts_is_none(self, server: ProtocolServer) -> None:
        server.script(Reply(body={**answer_body(), "usage": {}}))
        assert ask(server.url).usage is None


class TestPrivacy:
    def test_no_warning_quotes_what_the_sdk_does_not_know(self, server: ProtocolServer) -> None:
        # Warnings are errors in tests.
        server.script(answer([{"type": SAMPLE_TEXT, "text": SAMPLE_TEXT}], finish_reason="Achebe"))
        assert ask(server.url).finish is Finish.UNKNOWN

    @pytest.mark.parametrize("key", ["", f"{KEY}\n"])
    def test_a_key_that_cannot_be_sent_is_refused_unseen(self, key: str) -> None:
        with pytest.raises(PiiBenchError, match="key for provider 'mistral'") as caught:
            MistralModel("mistral", "m", api_key=key, base_url=MISTRAL)
        assert KEY not in str(caught.value)


class TestConnections:
    def test_connecting_takes_at_most_ten_seconds_of_the_timeout(
        self, server: ProtocolServer
    ) -> None:
        seen: list[object] = []

        async def run() -> None:
            model = MistralModel("mistral", "m", api_key=KEY, base_url=server.url, timeout=60.0)
            http = model.client.sdk_configuration.async_client

            async def look(request: Any) -> None:
                seen.append(request.extensions["timeout"])

            http.event_hooks["request"].append(look)  # type: ignore[union-attr]
            try:
                await model.complete(REQUEST)
            finally:
                await model.close()

        server.script(answer())
        asyncio.run(run())
        assert seen == [{"connect": 10.0, "read": 60.0, "write": 60.0, "pool": 60.0}]


class TestIdentity:
    @pytest.mark.parametrize("base_url", [MISTRAL, f"{MISTRAL}/", f"{MISTRAL}/v1"])
    def test_name_and_endpoint(self, base_url: str) -> None:
        model = MistralModel("mistral", "model-test", api_key=KEY, base_url=base_url)
        asyncio.run(model.close())
        assert (model.name, model.model) == ("mistral/model-test", "model-test")
        assert (model.endpoint, model.identity) == (MISTRAL, {"endpoint": MISTRAL})

    def test_another_name(self) -> None:
        model = MistralModel("mistral", "m", api_key=KEY, base_url=MISTRAL, name="mistral/m@host")
        asyncio.run(model.close())
        assert model.name == "mistral/m@host"
