from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pii_bench.errors import ProviderRefusedError
from pii_bench.models.anthropic_messages import read_completion, read_error, request_body
from pii_bench.models.base import (
    CallError,
    Completion,
    Finish,
    Message,
    Request,
    Sampling,
    Usage,
)
from pii_bench.models.batch import Absence
from tests.anthropic_replies import (
    error_body,
    failure,
    message,
    message_body,
    text_block,
    thinking_block,
)
from tests.batch_protocols import AnthropicBatches
from tests.batch_server import Fault
from tests.models.adapters import MESSAGES, SERVICES, Calls
from tests.models.batch_cases import CASES, TAG, request, submit_and_read
from tests.protocol_server import ProtocolServer, Reply

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pii_bench.models.base import Outcome

ask = Calls(SERVICES["anthropic"].connect).ask


class TestRequest:
    def test_with_a_temperature_the_last_version_that_has_one_is_used(
        self, server: ProtocolServer
    ) -> None:
        server.script(message())
        ask(server.url)
        assert server.requests[0].headers["anthropic-version"] == "2023-06-01"

    def test_without_a_temperature_the_newest_version_is_used(self, server: ProtocolServer) -> None:
        server.script(message())
        ask(server.url, Request("s1", "naive", MESSAGES, Sampling(None, max_tokens=128_000)))
        (request,) = server.requests
        assert request.headers["anthropic-version"] == "2026-10-21"
        # No streaming either, however long the answer may be.
        assert request.body.keys() == {"model", "max_tokens", "system", "messages"}


class TestRequestBody:
    def test_messages_keep_their_order_without_a_system_prompt(self) -> None:
        messages = (Message("user", "1"), Message("assistant", "2"), Message("user", "3"))
        body = request_body("m", Request("s", "p", messages, Sampling()))
        assert [message["role"] for message in body["messages"]] == ["user", "assistant", "user"]
        assert "system" not in body

    def test_several_system_prompts_are_joined(self) -> None:
        messages = (Message("system", "A."), Message("user", "Hi"), Message("system", "B."))
        body = request_body("m", Request("s", "p", messages, Sampling()))
        assert body["system"] == "A.\n\nB."
        assert body["messages"] == [{"role": "user", "content": "Hi"}]


def test_no_telemetry_span_is_opened(
    server: ProtocolServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_OPEN_TELEMETRY_TRACES_CONTENT_MODE", "content")
    tracers: list[object] = []
    monkeypatch.setattr("opentelemetry.trace.get_tracer", tracers.append)
    server.script(message())
    assert ask(server.url).text == "hello"
    assert tracers == []


class TestAnswers:
    def test_a_filter_error_is_an_empty_answer(self) -> None:
        reply = failure(400, text="Output blocked by content filtering policy")
        assert outcome_of(reply) == Completion(text="", finish=Finish.FILTER)

    @pytest.mark.parametrize(
        ("blocks", "text", "reasoning"),
        [
            ([], "", None),
            (
                [thinking_block("First."), {"type": "redacted_thinking", "data": "ZW5jcnlwdGVk"},
                 thinking_block("Then."), text_block("Done")],
                "Done",
                "First.\n\nThen.",
            ),
            ([thinking_block(""), text_block("Done")], "Done", None),
            ([text_block("a"), {"type": "container_upload"}, text_block("b")], "ab", None),
        ],
    )  # fmt: skip
    def test_texts_are_joined_and_thinking_is_reasoning(
        self, blocks: list[dict[str, Any]], text: str, reasoning: str | None
    ) -> None:
        answer = read_completion(message_body(*blocks))
        assert (answer.text, answer.reasoning) == (text, reasoning)

    def test_input_includes_tokens_read_from_a_cache_or_written_to_it(self) -> None:
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

    @pytest.mark.parametrize("usage", [{"input_tokens": 5}, [], "many"])
    def test_usage_may_be_missing(self, usage: object) -> None:
        body = {"content": [text_block("hello")], "usage": usage}
        assert read_completion(body) == Completion("hello", Finish.UNKNOWN)

    def test_details_of_the_usage_may_be_null(self) -> None:
        usage = {"cache_read_input_tokens": None, "output_tokens_details": None}
        assert read_completion(message_body(usage=usage)).usage == Usage(11, 7)

    @pytest.mark.parametrize(
        ("body", "detail"),
        [
            (None, "not JSON"),
            ({"content": "hello"}, "no content"),
            ({"content": [{"type": "text"}]}, "a content block without text"),
            ({"content": [{"type": "thinking", "thinking": 1}]}, "a content block without text"),
        ],
    )
    def test_other_bodies_are_bad_responses(self, body: object, detail: str) -> None:
        with pytest.raises(CallError, match=f"^bad_response: {detail}$"):
            read_completion(body)


def outcome_of(reply: Reply) -> Outcome:
    return read_error(reply.status, reply.body, model="model-test")


class TestErrors:
    @pytest.mark.parametrize(
        ("reply", "message"),
        [
            (failure(400, text="prompt is too long: 210000 tokens > 200000 maximum"),
             "bad_request: HTTP 400 invalid_request_error"),
            (failure(400, text="input length and `max_tokens` exceed context limit"),
             "bad_request: HTTP 400 invalid_request_error"),
            (failure(429, "rate_limit_error", code="ramp_limit_exceeded"),
             "rate_limit: HTTP 429 rate_limit_error"),
            (failure(429, "rate_limit_error", code=["organization_on_hold"]),
             "rate_limit: HTTP 429 rate_limit_error"),
            (failure(504, "timeout_error"), "server_error: HTTP 504 timeout_error"),
            (failure(503, "overloaded_error"), "overloaded: HTTP 503 overloaded_error"),
        ],
    )  # fmt: skip
    def test_failures_of_one_call(self, reply: Reply, message: str) -> None:
        outcome = outcome_of(reply)
        assert isinstance(outcome, CallError)
        assert str(outcome) == message

    @pytest.mark.parametrize(
        ("reply", "remedy"),
        [
            (failure(400, text="Your credit balance is too low to access the Anthropic API."),
             "no credit left"),
            (failure(400, text="You have reached your specified API usage limits."),
             "spend limit is reached"),
            (failure(400, text="This organization has been disabled."), "account is closed"),
            (failure(400, code="organization_on_hold"), "account is closed or on hold"),
            (failure(429, "rate_limit_error", code="enforced_spend_limit_reached"),
             "spend limit is reached"),
            (failure(400, text="`temperature` is deprecated for this model."),
             "`temperature`: run with `--temperature default`"),
            (failure(400, text="temperature: Extra inputs are not permitted"),
             "`temperature`: run with `--temperature default`"),
            (failure(400, text="output_config.format: Extra inputs are not permitted"),
             "run without `--output schema`"),
            (failure(400, text="'model-test' does not support structured outputs."),
             "run without `--output schema`"),
            (failure(400, text="max_tokens: 9000 > 8192, which is the maximum for model-test"),
             "run with a lower `--max-tokens`"),
        ],
    )  # fmt: skip
    def test_refusals_of_every_call(self, reply: Reply, remedy: str) -> None:
        outcome = outcome_of(reply)
        assert isinstance(outcome, ProviderRefusedError)
        assert remedy in str(outcome)

    @pytest.mark.parametrize(
        ("body", "message"),
        [
            (error_body("overloaded_error"), "overloaded: overloaded_error"),
            (error_body("rate_limit_error"), "rate_limit: rate_limit_error"),
            (error_body("invalid_request_error"), "bad_request: invalid_request_error"),
            (error_body("api_error"), "server_error: api_error"),
            (error_body("of_a_later_version"), "server_error: of_a_later_version"),
            (None, "server_error"),
            ([], "server_error"),
            ({"error": "text"}, "server_error"),
            ({"error": None}, "server_error"),
        ],
    )
    def test_errors_in_a_batch_have_no_status(self, body: object, message: str) -> None:
        outcome = read_error(None, body, model="m")
        assert isinstance(outcome, CallError)
        assert str(outcome) == message

    def test_errors_in_a_batch_may_be_filters_and_refusals(self) -> None:
        filtered = error_body("invalid_request_error", "blocked by content filtering policy")
        assert read_error(None, filtered, model="m") == Completion("", Finish.FILTER)
        refused = read_error(None, error_body("authentication_error"), model="m")
        assert isinstance(refused, ProviderRefusedError)


CASE = CASES["anthropic"]
NOW = 1_800_000_000.0
HOUR = 3600.0


@pytest.fixture
def batches() -> Iterator[AnthropicBatches]:
    with AnthropicBatches() as batches:
        yield batches


def find(batches: AnthropicBatches, requests: int = 1) -> str | Absence:
    return CASE.ask(batches.url, lambda service: service.find(TAG, since=NOW, requests=requests))


def add_ended_job(batches: AnthropicBatches, *custom_ids: str) -> str:
    job = batches.add_job({name: {} for name in custom_ids})
    batches.look_at(job)
    return job


def test_a_job_is_one_call_with_all_requests(batches: AnthropicBatches) -> None:
    CASE.ask(batches.url, lambda service: submit_and_read(service, [request()]))

    line = {"custom_id": f"{TAG}-0", "params": request_body("model-test", request())}
    assert batches.requests[0].body == {"requests": [line]}


@pytest.mark.parametrize(("temperature", "old"), [(0.0, True), (None, False)])
def test_a_batch_with_a_temperature_uses_the_version_that_has_one(
    batches: AnthropicBatches, temperature: float | None, old: bool
) -> None:
    sampled = request(sampling=Sampling(temperature=temperature))

    CASE.ask(batches.url, lambda service: submit_and_read(service, [sampled]))

    create = batches.requests[0]
    assert (create.headers["anthropic-version"] == "2023-06-01") == old
    assert ("temperature" in create.body["requests"][0]["params"]) == old


def test_results_are_not_read_from_a_url_in_a_response(batches: AnthropicBatches) -> None:
    described: dict[str, Any] = {
        "id": "job-1",
        "processing_status": "ended",
        "request_counts": {"succeeded": 1, "processing": 0},
        "results_url": "https://elsewhere.invalid/results",
    }
    batches.faults = {1: Fault(Reply(body=described))}

    CASE.ask(batches.url, lambda service: submit_and_read(service, [request()]))

    assert batches.lines[-1] == "GET /v1/messages/batches/job-1/results"


def test_only_a_job_of_the_same_size_is_found(batches: AnthropicBatches) -> None:
    add_ended_job(batches, f"{TAG}-0")
    batches.add_job({"somebody-0": {}, "somebody-1": {}, "somebody-2": {}})

    assert find(batches, requests=2) is Absence.SURE


def test_a_running_job_of_the_same_size_may_be_the_right_one(batches: AnthropicBatches) -> None:
    batches.looks = 1
    add_ended_job(batches, "somebody-0")
    running = batches.add_job({f"{TAG}-0": {}})

    assert find(batches) is Absence.UNDECIDED
    assert find(batches) == running


def test_old_jobs_are_not_searched(batches: AnthropicBatches) -> None:
    batches.clock = NOW - 2 * HOUR
    add_ended_job(batches, f"{TAG}-0")
    batches.clock = NOW - HOUR / 2
    add_ended_job(batches, "somebody-0")

    assert find(batches) is Absence.SURE
    assert batches.lines == [
        "GET /v1/messages/batches",
        "GET /v1/messages/batches/job-2/results",
    ]


def test_archived_jobs_are_not_searched(batches: AnthropicBatches) -> None:
    described = {"id": "job-1", "created_at": "2027-01-15T08:00:00Z", "archived_at": "2027-02-15"}
    batches.faults = {0: Fault(Reply(body={"data": [described], "has_more": False}))}

    assert find(batches) is Absence.SURE


def test_the_clock_of_the_provider_may_differ(batches: AnthropicBatches) -> None:
    batches.clock = NOW - HOUR / 2

    assert find(batches) is Absence.SURE
    ours = add_ended_job(batches, f"{TAG}-0")
    assert find(batches) == ours
