from __future__ import annotations

import asyncio

import pytest

from pii_bench.errors import PiiBenchError
from pii_bench.models.anthropic_messages import (
    AnthropicModel,
    read_completion,
    request_body,
    version_headers,
)
from pii_bench.models.base import (
    AnswerSchema,
    Completion,
    Finish,
    Message,
    Request,
    Sampling,
    Usage,
)
from tests.anthropic_replies import failure, message, message_body, text_block, thinking_block
from tests.models.adapters import KEY, SERVICES
from tests.models.one_call import MESSAGES, SAMPLE_TEXT, Calls
from tests.protocol_server import ProtocolServer, Reply

calls = Calls(SERVICES["anthropic"].connect)
ask = calls.ask

ANTHROPIC = "https://api.anthropic.com"
UNSAMPLED = Request("s1", "naive", MESSAGES, Sampling(temperature=None, max_tokens=321))
SCHEMA = {
    "type": "object",
    "properties": {"answer": {"type": "array", "items": {"type": "string"}}},
    "required": ["answer"],
    "additionalProperties": False,
}


class TestRequest:
    def test_the_system_prompt_stands_apart_and_the_bookkeeping_is_not_sent(
        self, server: ProtocolServer
    ) -> None:
        server.script(message())
        ask(server.url)
        (request,) = server.requests
        assert request.path == "/v1/messages"
        assert request.headers["authorization"] == f"Bearer {KEY}"
        assert request.headers["content-type"] == "application/json"
        assert request.body == {
            "model": "model-test",
            "max_tokens": 321,
            "system": "Be brief.",
            "messages": [{"role": "user", "content": SAMPLE_TEXT}],
            "temperature": 0.0,
        }

    def test_a_temperature_is_sent_in_the_api_version_that_still_has_one(
        self, server: ProtocolServer
    ) -> None:
        server.script(message())
        ask(server.url)
        assert server.requests[0].headers["anthropic-version"] == "2023-06-01"

    def test_no_temperature_is_sent_where_none_is_asked_for(self, server: ProtocolServer) -> None:
        server.script(message())
        ask(server.url, UNSAMPLED)
        assert "temperature" not in server.requests[0].body
        assert server.requests[0].headers["anthropic-version"] == "2026-10-21"

    def test_a_schema_becomes_the_output_format(self, server: ProtocolServer) -> None:
        server.script(message())
        schema = AnswerSchema("answer", SCHEMA)
        ask(server.url, Request("s1", "naive", MESSAGES, Sampling(), schema))
        assert server.requests[0].body["output_config"] == {
            "format": {"type": "json_schema", "schema": SCHEMA}
        }

    @pytest.mark.parametrize("path", ["", "/", "/v1", "/v1/"])
    def test_the_base_url_may_name_the_version(self, server: ProtocolServer, path: str) -> None:
        server.script(message())
        ask(f"{server.url}{path}")
        assert server.requests[0].path == "/v1/messages"

    def test_a_long_answer_needs_no_stream(self, server: ProtocolServer) -> None:
        server.script(message())
        ask(server.url, Request("s1", "naive", MESSAGES, Sampling(None, max_tokens=128_000)))
        assert server.requests[0].body["max_tokens"] == 128_000
        assert "stream" not in server.requests[0].body


class TestRequestBody:
    def test_without_a_system_prompt_there_is_none(self) -> None:
        body = request_body("m", Request("s", "p", (Message("user", "Hi"),), Sampling()))
        assert "system" not in body

    def test_several_system_prompts_become_one(self) -> None:
        turns = (Message("system", "A."), Message("user", "Hi"), Message("system", "B."))
        body = request_body("m", Request("s", "p", turns, Sampling()))
        assert body["system"] == "A.\n\nB."
        assert body["messages"] == [{"role": "user", "content": "Hi"}]

    def test_turns_keep_their_order(self) -> None:
        turns = (Message("user", "1"), Message("assistant", "2"), Message("user", "3"))
        body = request_body("m", Request("s", "p", turns, Sampling()))
        assert [turn["role"] for turn in body["messages"]] == ["user", "assistant", "user"]

    def test_the_version_follows_the_temperature(self) -> None:
        assert version_headers(0.7) == {"anthropic-version": "2023-06-01"}
        assert version_headers(None) == {"anthropic-version": "2026-10-21"}


class TestEnvironment:
    def test_it_neither_redirects_nor_adds_anything(
        self, server: ProtocolServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name, value in {
            "ANTHROPIC_API_KEY": "sk-ant-other",
            "ANTHROPIC_AUTH_TOKEN": "other-token",
            "ANTHROPIC_BASE_URL": "http://127.0.0.1:9",
            "ANTHROPIC_CUSTOM_HEADERS": "x-planted: 1\nanthropic-version: 1999-01-01",
            "ANTHROPIC_PROFILE": "planted",
            "ANTHROPIC_WORKSPACE_ID": "planted",
        }.items():
            monkeypatch.setenv(name, value)
        server.script(message())
        assert ask(server.url, UNSAMPLED).text == "hello"
        headers = server.requests[0].headers
        assert headers["authorization"] == f"Bearer {KEY}"
        assert headers["anthropic-version"] == "2026-10-21"
        assert not {"x-planted", "x-api-key", "anthropic-workspace-id", "traceparent"} & set(
            headers
        )
        assert "planted" not in str({**headers, "authorization": ""})

    def test_no_span_is_opened_that_could_hold_the_texts(
        self, server: ProtocolServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("ANTHROPIC_OPEN_TELEMETRY_TRACES_CONTENT_MODE", "content")
        asked: list[object] = []
        monkeypatch.setattr("opentelemetry.trace.get_tracer", asked.append)
        server.script(message())
        assert ask(server.url).text == "hello"
        assert asked == []


class TestAnswers:
    @pytest.mark.parametrize(
        ("reason", "finish"),
        [
            ("end_turn", Finish.STOP),
            ("stop_sequence", Finish.STOP),
            ("max_tokens", Finish.LENGTH),
            ("model_context_window_exceeded", Finish.LENGTH),
            ("refusal", Finish.REFUSAL),
            ("pause_turn", Finish.UNKNOWN),
            ("tool_use", Finish.UNKNOWN),
            ("of a later version", Finish.UNKNOWN),
            (None, Finish.UNKNOWN),
        ],
    )
    def test_stop_reasons(self, reason: str | None, finish: Finish) -> None:
        answer = read_completion(message_body(text_block("part"), stop_reason=reason))
        assert (answer.text, answer.finish) == ("part", finish)

    def test_a_refusal_may_say_nothing(self, server: ProtocolServer) -> None:
        server.script(Reply(body=message_body(stop_reason="refusal")))
        answer = ask(server.url)
        assert (answer.text, answer.finish) == ("", Finish.REFUSAL)

    def test_a_filter_stops_the_answer(self, server: ProtocolServer) -> None:
        server.script(failure(400, text="Output blocked by content filtering policy"))
        assert ask(server.url) == Completion(text="", finish=Finish.FILTER)

    def test_thinking_is_reasoning_and_no_part_of_the_text(self, server: ProtocolServer) -> None:
        redacted = {"type": "redacted_thinking", "data": "ZW5jcnlwdGVk"}
        blocks = (thinking_block("First."), redacted, thinking_block("Then."), text_block("Done"))
        server.script(Reply(body=message_body(*blocks)))
        answer = ask(server.url)
        assert (answer.text, answer.reasoning) == ("Done", "First.\n\nThen.")

    def test_thinking_that_is_not_shown_is_no_reasoning(self) -> None:
        body = message_body(thinking_block(""), text_block("Done"))
        assert read_completion(body).reasoning is None

    def test_texts_are_joined_and_unknown_blocks_left_out(self) -> None:
        body = message_body(text_block("a"), {"type": "container_upload"}, text_block("b"))
        assert read_completion(body).text == "ab"

    def test_input_counts_what_was_read_from_a_cache_and_written_to_it(self) -> None:
        usage = {
            "input_tokens": 5,
            "cache_read_input_tokens": 100,
            "cache_creation_input_tokens": 20,
            "output_tokens": 40,
            "output_tokens_details": {"thinking_tokens": 30},
        }
        assert read_completion(message_body(usage=usage)).usage == Usage(
            input_tokens=125, output_tokens=40, reasoning_tokens=30, cached_tokens=100
        )

    @pytest.mark.parametrize("usage", [None, {}, {"input_tokens": 5}, [], "many"])
    def test_usage_may_be_missing(self, usage: object) -> None:
        body = {"content": [text_block("hello")], "usage": usage}
        assert read_completion(body) == Completion("hello", Finish.UNKNOWN)

    def test_details_of_the_usage_may_be_null(self) -> None:
        usage = {"cache_read_input_tokens": None, "output_tokens_details": None}
        assert read_completion(message_body(usage=usage)).usage == Usage(11, 7)


class TestPrivacy:
    @pytest.mark.parametrize("key", ["", f"{KEY}\n"])
    def test_a_key_that_cannot_be_sent_is_refused_unseen(self, key: str) -> None:
        with pytest.raises(PiiBenchError, match="key for provider 'anthropic'") as caught:
            AnthropicModel("anthropic", "m", api_key=key, base_url=ANTHROPIC)
        assert KEY not in str(caught.value)


class TestIdentity:
    @pytest.mark.parametrize("base_url", [ANTHROPIC, f"{ANTHROPIC}/", f"{ANTHROPIC}/v1"])
    def test_name_and_endpoint(self, base_url: str) -> None:
        model = AnthropicModel("anthropic", "model-test", api_key=KEY, base_url=base_url)
        asyncio.run(model.close())
        assert (model.name, model.model) == ("anthropic/model-test", "model-test")
        assert (model.endpoint, model.identity) == (ANTHROPIC, {"endpoint": ANTHROPIC})

    def test_another_name(self) -> None:
        model = AnthropicModel(
            "anthropic", "m", api_key=KEY, base_url=ANTHROPIC, name="anthropic/m@host"
        )
        asyncio.run(model.close())
        assert model.name == "anthropic/m@host"
