from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from pii_bench.errors import ProviderRefusedError, ProviderUnavailableError
from pii_bench.models.base import Finish, Sampling, Usage
from pii_bench.models.catalog import build_batch_service
from pii_bench.models.openai_compatible import OpenAICompatibleModel, read_completion, request_body
from tests.batch_protocols import OpenAIBatches
from tests.batch_server import Item
from tests.models.adapters import KEY, REQUEST, SCHEMA, SERVICES, Adapter, ask
from tests.models.batch_cases import CASES, request, run_job, submit_and_read
from tests.protocol_server import ProtocolServer, completion

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pii_bench.models.base import Request

OPENAI = "https://api.openai.com/v1"
DEEPSEEK = "https://api.deepseek.com"


def body_of(request: Request, endpoint: str) -> dict[str, Any]:
    return request_body("some-model", request, endpoint=endpoint)


@pytest.fixture
def adapter() -> Adapter:
    return SERVICES["openai"]


def test_openai_gets_its_own_parameters_and_the_headers_of_its_variables(
    adapter: Adapter, server: ProtocolServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As a proxy, the server receives requests to any host.
    monkeypatch.setenv("HTTP_PROXY", server.url)
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.setenv("OPENAI_ORG_ID", "org-mine")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-mine")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Gateway: mine")
    server.script(completion("hello"))
    ask(adapter.connect, "http://api.openai.com")
    (request,) = server.requests
    assert request.path == "http://api.openai.com/v1/chat/completions"
    assert request.body["max_completion_tokens"] == 321
    names = ("openai-organization", "openai-project", "x-gateway")
    assert [request.headers[name] for name in names] == ["org-mine", "proj-mine", "mine"]


class TestRequestBody:
    @pytest.mark.parametrize(
        ("endpoint", "limit"),
        [
            (OPENAI, "max_completion_tokens"),
            ("https://eu.api.openai.com/v1", "max_completion_tokens"),
            ("https://api.openai.com.example.org", "max_tokens"),
            ("https://notapi.openai.com", "max_tokens"),
        ],
    )
    def test_the_name_of_the_token_limit_depends_on_the_endpoint(
        self, endpoint: str, limit: str
    ) -> None:
        request = replace(REQUEST, sampling=Sampling(temperature=None, max_tokens=9))
        body = body_of(request, endpoint)
        assert body.keys() == {"model", "messages", limit}
        assert body[limit] == 9

    @pytest.mark.parametrize(
        ("endpoint", "kind"), [(OPENAI, "json_schema"), (DEEPSEEK, "json_object")]
    )
    def test_only_deepseek_gets_json_mode_instead_of_a_schema(
        self, endpoint: str, kind: str
    ) -> None:
        form = body_of(replace(REQUEST, schema=SCHEMA), endpoint)["response_format"]
        assert (form["type"], "json_schema" in form) == (kind, kind == "json_schema")


class TestAnswers:
    def test_a_refusal_is_the_text(self) -> None:
        answer = read_completion(completion(None, refusal="I cannot.").body)
        assert (answer.text, answer.finish) == ("I cannot.", Finish.REFUSAL)

    def test_reasoning_without_an_answer(self) -> None:
        reply = completion(None, finish_reason="length", extra={"reasoning": "The query"})
        answer = read_completion(reply.body)
        assert (answer.text, answer.finish, answer.reasoning) == ("", Finish.LENGTH, "The query")

    @pytest.mark.parametrize("nothing", [None, "", ["a list"]])
    def test_no_reasoning(self, nothing: object) -> None:
        reply = completion("Halifax", extra={"reasoning_content": nothing})
        assert read_completion(reply.body).reasoning is None

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
            # `completion_tokens` without the reasoning: xAI, then Gemini, which has no details.
            ({"total_tokens": 222, "completion_tokens_details": {"reasoning_tokens": 94}},
             Usage(120, 102, reasoning_tokens=94)),
            ({"total_tokens": 222}, Usage(120, 102)),
            ({"total_tokens": None, "completion_tokens_details": {"reasoning_tokens": 94}},
             Usage(120, 102, reasoning_tokens=94)),
            ({"total_tokens": 100}, Usage(120, 8)),
        ],
    )  # fmt: skip
    def test_details_of_the_usage(self, counts: dict[str, object], usage: Usage) -> None:
        reply = completion("Halifax", usage=(120, 8), counts=counts)
        assert read_completion(reply.body).usage == usage


@pytest.mark.parametrize("reason", [[], {}])
def test_a_finish_reason_that_is_no_text_is_unknown(reason: object) -> None:
    body = {"choices": [{"message": {"content": "ha"}, "finish_reason": reason}]}

    assert read_completion(body).finish is Finish.UNKNOWN


CASE = CASES["openai"]


@pytest.fixture
def batches() -> Iterator[OpenAIBatches]:
    with OpenAIBatches() as batches:
        yield batches


def test_batches_have_the_parameters_of_openai() -> None:
    async def size_of(base_url: str) -> int:
        model = OpenAICompatibleModel("openai", "model-test", api_key=KEY, base_url=base_url)
        try:
            return build_batch_service(model).size(request())
        finally:
            await model.close()

    # `max_completion_tokens` is longer than the `max_tokens` of other servers.
    other = asyncio.run(size_of("https://models.example/v1"))
    assert asyncio.run(size_of(OPENAI)) == other + len("_completion")


@pytest.mark.parametrize("code", ["token_limit_exceeded", "invalid_json_line"])
def test_a_refused_job_has_the_reason(batches: OpenAIBatches, code: str) -> None:
    batches.final, batches.outcome = "failed", lambda _: Item(code=code)

    state, results = CASE.ask(batches.url, lambda service: run_job(service, [request()]))

    assert (state.ended, results) == (True, {})
    later = code == "token_limit_exceeded"
    assert type(state.absent) is (ProviderUnavailableError if later else ProviderRefusedError)
    assert f"provider 'openai' refuses model 'model-test': batch failed {code}: " in str(
        state.absent
    )
    assert ("--limit" in str(state.absent)) == later


def test_the_lines_of_requests_are_ascii(batches: OpenAIBatches) -> None:
    CASE.ask(batches.url, lambda service: submit_and_read(service, [request("\u2028é")]))

    _, content = batches.requests[0].body["file"]
    assert content.isascii()
    assert json.loads(content)["body"]["messages"][1]["content"] == "\u2028é"
