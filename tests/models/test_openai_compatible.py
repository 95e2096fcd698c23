from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from pii_bench.errors import PiiBenchError
from pii_bench.models.base import (
    AnswerSchema,
    Completion,
    Finish,
    Sampling,
    Usage,
)
from pii_bench.models.openai_compatible import (
    OpenAICompatibleModel,
    read_completion,
    request_body,
)
from tests.models.adapters import KEY, SERVICES
from tests.models.one_call import REQUEST, SAMPLE_TEXT, Calls
from tests.protocol_server import ProtocolServer, Reply, api_error, completion

if TYPE_CHECKING:
    from pii_bench.models.base import Request

calls = Calls(SERVICES["openai"].connect)
ask = calls.ask

OPENAI = "https://api.openai.com/v1"
DEEPSEEK = "https://api.deepseek.com"
OWN = "http://localhost:8000/v1"
SCHEMA = {
    "type": "object",
    "properties": {"answer": {"type": "array", "items": {"type": "string"}}},
    "required": ["answer"],
    "additionalProperties": False,
}


def body_of(request: Request, endpoint: str) -> dict[str, Any]:
    return request_body("some-model", request, endpoint=endpoint)


class TestRequest:
    def test_sends_the_messages_and_the_sampling_and_nothing_of_the_bookkeeping(
        self, server: ProtocolServer
    ) -> None:
        server.script(completion("hello"))
        ask(server.url)
        (request,) = server.requests
        assert request.path == "/v1/chat/completions"
        assert request.headers["authorization"] == f"Bearer {KEY}"
        assert request.body == {
            "model": "model-test",
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": SAMPLE_TEXT},
            ],
            "temperature": 0.0,
            "max_tokens": 321,
        }

    @pytest.mark.parametrize(
        ("host", "limit", "other"),
        [
            ("api.openai.com", "max_completion_tokens", "max_tokens"),
            ("eu.api.openai.com", "max_completion_tokens", "max_tokens"),
            ("api.openai.com.example.org", "max_tokens", "max_completion_tokens"),
            ("notapi.openai.com", "max_tokens", "max_completion_tokens"),
        ],
    )
    def test_names_the_token_limit_as_the_endpoint_knows_it(
        self,
        server: ProtocolServer,
        monkeypatch: pytest.MonkeyPatch,
        host: str,
        limit: str,
        other: str,
    ) -> None:
        # As a proxy, the server receives what is meant for any host.
        monkeypatch.setenv("HTTP_PROXY", server.url)
        monkeypatch.delenv("NO_PROXY", raising=False)
        server.script(completion("hello"))
        ask(f"http://{host}")
        assert server.requests[0].path == f"http://{host}/v1/chat/completions"
        assert server.requests[0].body[limit] == 321
        assert other not in server.requests[0].body

    @pytest.fixture
    def openai_variables(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OPENAI_ORG_ID", "org-mine")
        monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-mine")
        monkeypatch.setenv("OPENAI_ADMIN_KEY", "sk-admin-mine")
        monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Gateway: mine\nAuthorization: Bearer mine")

    @pytest.mark.usefixtures("openai_variables")
    def test_openai_is_sent_what_its_variables_say(
        self, server: ProtocolServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("HTTP_PROXY", server.url)
        monkeypatch.delenv("NO_PROXY", raising=False)
        server.script(completion("hello"))
        ask("http://api.openai.com")
        headers = server.requests[0].headers
        assert (headers["openai-organization"], headers["openai-project"]) == (
            "org-mine",
            "proj-mine",
        )
        assert headers["x-gateway"] == "mine"


class TestRequestBody:
    def test_no_temperature_is_sent_where_none_is_given(self) -> None:
        request = replace(REQUEST, sampling=Sampling(temperature=None, max_tokens=9))
        assert "temperature" not in body_of(request, OPENAI)

    def test_another_draw_is_the_same_request(self) -> None:
        assert body_of(replace(REQUEST, draw=3), OWN) == body_of(REQUEST, OWN)

    @pytest.mark.parametrize("endpoint", [OPENAI, OWN])
    def test_a_schema_is_enforced(self, endpoint: str) -> None:
        request = replace(REQUEST, schema=AnswerSchema("answer", SCHEMA))
        assert body_of(request, endpoint)["response_format"] == {
            "type": "json_schema",
            "json_schema": {"name": "answer", "strict": True, "schema": SCHEMA},
        }

    def test_deepseek_is_asked_for_json_because_it_takes_no_schema(self) -> None:
        request = replace(REQUEST, schema=AnswerSchema("answer", SCHEMA))
        assert body_of(request, DEEPSEEK)["response_format"] == {"type": "json_object"}

    def test_free_text_has_no_format(self) -> None:
        assert "response_format" not in body_of(REQUEST, OPENAI)


class TestAnswers:
    @pytest.mark.parametrize(
        ("reason", "finish"),
        [
            ("stop", Finish.STOP),
            ("length", Finish.LENGTH),
            ("content_filter", Finish.FILTER),
            ("abort", Finish.UNKNOWN),
        ],
    )
    def test_finish_reasons(self, server: ProtocolServer, reason: str, finish: Finish) -> None:
        server.script(completion("part", finish_reason=reason))
        answer = ask(server.url)
        assert (answer.text, answer.finish) == ("part", finish)

    @pytest.mark.parametrize("content", ["", None])
    def test_no_content_is_an_empty_answer(
        self, server: ProtocolServer, content: str | None
    ) -> None:
        server.script(completion(content))
        answer = ask(server.url)
        assert (answer.text, answer.finish) == ("", Finish.STOP)

    @pytest.mark.parametrize("key", ["reasoning_content", "reasoning"])
    def test_reasoning_that_the_server_gives_apart(self, server: ProtocolServer, key: str) -> None:
        server.script(completion("Halifax", beside={key: "The query is about a place."}))
        answer = ask(server.url)
        assert (answer.text, answer.reasoning) == ("Halifax", "The query is about a place.")

    def test_reasoning_within_the_answer_stays_there(self, server: ProtocolServer) -> None:
        server.script(completion("<think>A place.</think>Halifax"))
        answer = ask(server.url)
        assert (answer.text, answer.reasoning) == ("<think>A place.</think>Halifax", None)

    def test_reasoning_that_the_limit_cut_off(self, server: ProtocolServer) -> None:
        cut = completion(None, finish_reason="length", beside={"reasoning": "The query"})
        server.script(cut)
        answer = ask(server.url)
        assert (answer.text, answer.finish, answer.reasoning) == ("", Finish.LENGTH, "The query")

    @pytest.mark.parametrize("nothing", [None, "", ["a list"]])
    def test_no_reasoning(self, server: ProtocolServer, nothing: object) -> None:
        server.script(completion("Halifax", beside={"reasoning_content": nothing}))
        assert ask(server.url).reasoning is None

    @pytest.mark.parametrize(
        ("counts", "usage"),
        [
            ({"prompt_tokens_details": {"cached_tokens": 96, "audio_tokens": 0},
              "completion_tokens_details": {"reasoning_tokens": 5}},
             Usage(120, 8, reasoning_tokens=5, cached_tokens=96)),
            ({"prompt_cache_hit_tokens": 64, "prompt_cache_miss_tokens": 56},
             Usage(120, 8, cached_tokens=64)),
            ({"prompt_tokens_details": None, "completion_tokens_details": {}}, Usage(120, 8)),
            ({"prompt_tokens_details": {"cached_tokens": None}}, Usage(120, 8)),
        ],
    )  # fmt: skip
    def test_usage_in_detail(
        self, server: ProtocolServer, counts: dict[str, object], usage: Usage
    ) -> None:
        server.script(completion("Halifax", usage=(120, 8), counts=counts))
        assert ask(server.url).usage == usage

    def test_a_completion_is_read_as_a_batch_brings_it(self) -> None:
        body = completion("Halifax", model="model-test-2024").body
        assert read_completion(body) == Completion(
            "Halifax", Finish.STOP, model="model-test-2024", usage=Usage(11, 7)
        )

    def test_a_refusal_is_the_answer(self, server: ProtocolServer) -> None:
        server.script(completion(None, refusal="I cannot help with that."))
        answer = ask(server.url)
        assert (answer.text, answer.finish) == ("I cannot help with that.", Finish.REFUSAL)

    @pytest.mark.parametrize(
        "reply",
        [
            api_error(400, "content_filter"),
            api_error(400, "content_policy_violation"),
            api_error(400, "invalid_request_error", message="Content Exists Risk"),
            api_error(400, "invalid_prompt",
                      message="Invalid prompt: your prompt was flagged as potentially violating"),
            api_error(403, 403, message="model-test requires moderation. Your input was flagged"),
        ],
    )  # fmt: skip
    def test_a_prompt_that_a_filter_stops(self, server: ProtocolServer, reply: Reply) -> None:
        server.script(reply)
        assert ask(server.url) == Completion(text="", finish=Finish.FILTER)


class TestPrivacy:
    @pytest.mark.parametrize(
        "key", ["", f"{KEY}\n", f"{KEY} ", f"\N{LEFT DOUBLE QUOTATION MARK}{KEY}"]
    )
    def test_a_key_that_cannot_be_sent_is_refused_unseen(self, key: str) -> None:
        with pytest.raises(PiiBenchError, match="key for provider 'openai'") as caught:
            OpenAICompatibleModel("openai", "m", api_key=key, base_url=OPENAI)
        assert KEY not in str(caught.value)


class TestIdentity:
    def test_name_and_endpoint(self) -> None:
        model = OpenAICompatibleModel("openai", "some-model", api_key=KEY, base_url=f"{OPENAI}/")
        asyncio.run(model.close())
        assert (model.name, model.identity) == ("openai/some-model", {"endpoint": OPENAI})
        assert (model.model, model.endpoint) == ("some-model", OPENAI)

    def test_the_environment_does_not_move_the_endpoint(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("OPENAI_BASE_URL", "https://elsewhere.example/v1")
        model = OpenAICompatibleModel("openai", "m", api_key=KEY, base_url=OPENAI)
        asyncio.run(model.close())
        assert str(model.client.base_url) == f"{OPENAI}/"
