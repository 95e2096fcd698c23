from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from pii_bench.errors import ProviderRefusedError, ProviderUnavailableError
from pii_bench.models.base import (
    CallError,
    Completion,
    Finish,
    Sampling,
    Usage,
)
from pii_bench.models.catalog import build_batch_service
from pii_bench.models.openai_compatible import (
    OpenAICompatibleModel,
    read_completion,
    read_error,
    request_body,
)
from tests.batch_protocols import OpenAIBatches, read_lines
from tests.batch_server import Item
from tests.models.adapters import KEY, REQUEST, SCHEMA, SERVICES, Calls
from tests.models.batch_cases import CASES, TAG, request, run_job, submit_and_read
from tests.protocol_server import ProtocolServer, Reply, api_error, completion

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pii_bench.models.base import Outcome, Request

CALLS = Calls(SERVICES["openai"].connect)
ask = CALLS.ask

OPENAI = "https://api.openai.com/v1"
DEEPSEEK = "https://api.deepseek.com"
OWN = "http://localhost:8000/v1"


def body_of(request: Request, endpoint: str) -> dict[str, Any]:
    return request_body("some-model", request, endpoint=endpoint)


class TestRequest:
    def test_openai_gets_its_own_parameters_and_the_headers_of_its_variables(
        self, server: ProtocolServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # As a proxy, the server receives requests to any host.
        monkeypatch.setenv("HTTP_PROXY", server.url)
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.setenv("OPENAI_ORG_ID", "org-mine")
        monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-mine")
        monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Gateway: mine")
        server.script(completion("hello"))
        ask("http://api.openai.com")
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
    def test_a_filter_error_is_an_empty_answer(self, reply: Reply) -> None:
        assert outcome_of(reply) == Completion(text="", finish=Finish.FILTER)

    @pytest.mark.parametrize(
        ("body", "message"),
        [
            (None, "bad_response: not JSON"),
            ({"choices": [{"message": None}]}, "bad_response: no choices"),
            ({"choices": [{"message": {"content": [{"type": "text"}]}}]},
             "bad_response: content is not text"),
            (completion("half", finish_reason="insufficient_system_resource").body,
             "server_error: finish_reason insufficient_system_resource"),
            (completion("half", finish_reason="error").body, "server_error: finish_reason error"),
        ],
    )  # fmt: skip
    def test_other_bodies_are_failures(self, body: object, message: str) -> None:
        with pytest.raises(CallError, match=f"^{message}$"):
            read_completion(body)


@pytest.mark.parametrize("reason", [[], {}])
def test_a_finish_reason_that_is_no_text_is_unknown(reason: object) -> None:
    body = {"choices": [{"message": {"content": "ha"}, "finish_reason": reason}]}

    assert read_completion(body).finish is Finish.UNKNOWN


def outcome_of(reply: Reply) -> Outcome:
    return read_error(reply.status, reply.body, provider="openai", model="model-test")


class TestErrors:
    @pytest.mark.parametrize(
        ("reply", "message"),
        [
            (api_error(400, "context_length_exceeded"),
             "bad_request: HTTP 400 context_length_exceeded"),
            (api_error(400, 400, kind="exceed_context_size_error"),
             "bad_request: HTTP 400 exceed_context_size_error"),
            # The prompt of this call is too long, whatever else the error names.
            (api_error(400, message="This model's maximum context length is 65536 tokens."),
             "bad_request: HTTP 400 context_length_exceeded"),
            (api_error(400, 400, param="max_tokens",
                       message="'max_tokens' is too large. This model's maximum context length is"),
             "bad_request: HTTP 400 context_length_exceeded"),
            (api_error(422, "two words", kind="x" * 65), "bad_request: HTTP 422"),
            (Reply(status=400, body={"object": "error", "type": "BadRequestError", "code": 400}),
             "bad_request: HTTP 400 BadRequestError"),
            (Reply(status=409, body={}), "server_error: HTTP 409"),
            (Reply(status=415), "bad_request: HTTP 415"),
            (Reply(status=503), "overloaded: HTTP 503"),
            (Reply(status=529, body={"error": "busy"}), "overloaded: HTTP 529"),
        ],
    )  # fmt: skip
    def test_failures_of_one_call(self, reply: Reply, message: str) -> None:
        outcome = outcome_of(reply)
        assert isinstance(outcome, CallError)
        assert str(outcome) == message

    @pytest.mark.parametrize(
        ("error", "message"),
        [
            ({"code": 429, "message": "Provider returned error"}, "rate_limit: HTTP 429"),
            ({"code": 502}, "server_error: HTTP 502"),
            ({"code": "oops"}, "bad_response: no choices"),
            ({"code": 402}, "provider 'openai' refuses model 'model-test': HTTP 402: "),
        ],
    )
    def test_an_error_may_have_the_status_of_a_success(
        self, server: ProtocolServer, error: dict[str, object], message: str
    ) -> None:
        for body in ({"error": error}, {"error": error, "choices": []}):
            server.script(Reply(body=body))
            assert str(CALLS.failure_of(server.url)).startswith(message)

    @pytest.mark.parametrize(
        ("reply", "remedy"),
        [
            (api_error(400, message="Model Not Exist"), "check the model's name"),
            (Reply(status=405), "check the model's name and the base URL"),
            (api_error(429, "insufficient_quota"), "no credit or quota left"),
            (api_error(429, "project_spend_limit_exceeded", kind="insufficient_quota"),
             "HTTP 429 project_spend_limit_exceeded: the account has no credit or quota left"),
            (api_error(429, "credit_balance_exhausted"), "no credit or quota left"),
            (api_error(422, "unsupported_parameter", param="temperature"),
             "HTTP 422 unsupported_parameter: it takes no such `temperature`: run with `--temp"),
            (api_error(400, message="Unsupported value of 'temperature': 0."),
             "`--temperature default`"),
            (api_error(422, message="openai does not support parameters: ['temperature']"),
             "`--temperature default`"),
            (api_error(400, message="invalid temperature: only 1 is allowed for this model"),
             "`--temperature default`"),
            (api_error(400, "invalid_value", "max_tokens is too large: 20480.", param="max_tokens"),
             "`--max-tokens`"),
            (api_error(400, param="max_completion_tokens"), "`--max-tokens`"),
            (api_error(400, "unsupported_parameter", "Use 'max_completion_tokens' instead.",
                       param="max_tokens"), "takes no `max_tokens`"),
            (api_error(422, message="Invalid schema for 'answer'", param="response_format"),
             "`--output schema`"),
            (api_error(400, "unknown_parameter", param="response_format.json_schema"),
             "`--output schema`"),
            (api_error(400, message="This response_format type is unavailable now"),
             "`--output schema`"),
            (api_error(400, message="invalid model ID", param="model"), "check the model's name"),
        ],
    )  # fmt: skip
    def test_refusals_of_every_call(self, reply: Reply, remedy: str) -> None:
        outcome = outcome_of(reply)
        assert isinstance(outcome, ProviderRefusedError)
        assert remedy in str(outcome)

    @pytest.mark.parametrize(
        ("param", "message"),
        [
            ("messages", "Invalid value"),
            ("messages", "'temperature' is not supported"),
            (None, "This model does not support images"),
            (None, "temperature"),
            (["temperature"], ""),
        ],
    )
    def test_other_parameters_are_failures_of_one_call(self, param: object, message: str) -> None:
        error = {"error": {"param": param, "message": message}}
        assert isinstance(outcome_of(Reply(status=400, body=error)), CallError)


CASE = CASES["openai"]


@pytest.fixture
def batches() -> Iterator[OpenAIBatches]:
    with OpenAIBatches() as batches:
        yield batches


def test_a_job_is_a_file_of_requests_and_a_batch_of_it(batches: OpenAIBatches) -> None:
    CASE.ask(batches.url, lambda service: submit_and_read(service, [request()]))

    upload, create = batches.requests[:2]
    file_name, content = upload.body["file"]
    assert (upload.body["purpose"], file_name) == ("batch", f"{TAG}.jsonl")
    assert read_lines(content) == [
        {
            "custom_id": f"{TAG}-0",
            "method": "POST",
            "url": "/v1/chat/completions",
            "body": request_body("model-test", request(), endpoint=OWN),
        }
    ]
    assert create.body == {
        "input_file_id": "file-1",
        "endpoint": "/v1/chat/completions",
        "completion_window": "24h",
        "metadata": {"pii_bench": TAG},
    }


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
