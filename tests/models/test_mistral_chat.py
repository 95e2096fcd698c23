from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from pii_bench.errors import ProviderRefusedError
from pii_bench.models.base import (
    AnswerSchema,
    CallError,
    Completion,
    Finish,
    Request,
    Sampling,
    Usage,
)
from pii_bench.models.batch import Absence
from pii_bench.models.mistral_chat import MistralModel, read_error, request_body
from tests.batch_protocols import MistralBatches, read_lines
from tests.batch_server import ABSENT, Fault, Item
from tests.mistral_replies import (
    answer,
    answer_body,
    failure,
    invalid,
    text_chunk,
    thinking_chunk,
)
from tests.models.adapters import (
    KEY,
    MESSAGES,
    REQUEST,
    SAMPLE_TEXT,
    SCHEMA,
    SERVICES,
    Calls,
)
from tests.models.batch_cases import CASES, TAG, request, run_job, submit_and_read
from tests.protocol_server import ProtocolServer, Reply

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pii_bench.models.base import Outcome

calls = Calls(SERVICES["mistral"].connect)
ask = calls.ask

REFERENCE = {"type": "reference", "reference_ids": [1]}


def request_with(sampling: Sampling, schema: AnswerSchema | None = None) -> Request:
    return Request("s1", "naive", MESSAGES, sampling, schema)


class TestRequest:
    def test_a_call_and_a_batch_have_the_same_body(self, server: ProtocolServer) -> None:
        server.script(answer())
        request = request_with(Sampling(0.7), SCHEMA)
        ask(server.url, request)
        sent = request_body("model-test", request)
        assert server.requests[0].body == {**sent, "stream": False}

    @pytest.mark.parametrize(
        ("temperature", "sent"),
        [
            (0.0, {"temperature": 0.0, "top_p": 1.0}),
            (0.7, {"temperature": 0.7}),
            (None, {}),
        ],
    )
    def test_only_greedy_sampling_sets_top_p(
        self, temperature: float | None, sent: dict[str, float]
    ) -> None:
        body = request_body("m", request_with(Sampling(temperature)))
        assert {name: body[name] for name in ("temperature", "top_p") if name in body} == sent


class TestTelemetry:
    @pytest.mark.parametrize("mode", ["dedicated", "global", "false"])
    def test_none_is_sent(
        self, server: ProtocolServer, monkeypatch: pytest.MonkeyPatch, mode: str
    ) -> None:
        # With `dedicated` the SDK would import a package that is not installed.
        monkeypatch.setenv("MISTRAL_SDK_TELEMETRY", mode)
        monkeypatch.setenv("MISTRAL_OTLP_TRACES_ENDPOINT", server.url)
        server.script(answer())
        assert ask(server.url).text == "hello"
        assert [request.path for request in server.requests] == ["/v1/chat/completions"]
        assert "traceparent" not in server.requests[0].headers

    def test_an_unknown_mode_is_a_refusal(
        self, server: ProtocolServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("MISTRAL_SDK_TELEMETRY", "of a later version")
        message = str(calls.failure_of(server.url))
        assert message.startswith("provider 'mistral': Invalid MISTRAL_SDK_TELEMETRY")
        assert server.requests == []


class TestAnswers:
    """Against a server, because the SDK changes what does not fit its types."""

    @pytest.mark.parametrize(
        ("content", "text", "reasoning"),
        [
            (None, "", None),
            ([], "", None),
            ([thinking_chunk("First, ", "then."), text_chunk("Do"), text_chunk("ne")],
             "Done", "First, then."),
            # Chunks of other types are ignored.
            ([{"type": "of a later version", "text": "no"}, REFERENCE,
              {"type": "thinking", "thinking": [REFERENCE, text_chunk("Hm.")]},
              text_chunk("Done")],
             "Done", "Hm."),
        ],
    )  # fmt: skip
    def test_texts_are_joined_and_thinking_is_reasoning(
        self, server: ProtocolServer, content: object, text: str, reasoning: str | None
    ) -> None:
        server.script(answer(content))
        completion = ask(server.url)
        assert (completion.text, completion.reasoning) == (text, reasoning)

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
    def test_only_the_message_is_required(
        self, server: ProtocolServer, body: dict[str, Any]
    ) -> None:
        server.script(Reply(body=body))
        assert ask(server.url) == Completion("hello", Finish.UNKNOWN)

    def test_no_warning_quotes_an_answer_of_unknown_type(self, server: ProtocolServer) -> None:
        # Warnings are errors in tests.
        server.script(answer([{"type": SAMPLE_TEXT, "text": SAMPLE_TEXT}], finish_reason="Achebe"))
        assert ask(server.url).finish is Finish.UNKNOWN

    @pytest.mark.parametrize(
        ("body", "message"),
        [
            (b'{"choices": [{"mess', "bad_response: not JSON"),
            ({"choices": []}, "bad_response: no choices"),
            ({"choices": [{"message": None}]}, "bad_response: no choices"),
            ({"choices": [{"message": {"content": {"a": 1}}}]},
             "bad_response: content is not text"),
            (answer_body([{"type": "text"}]), "bad_response: a content chunk without text"),
            (answer_body([{"type": "thinking", "thinking": 1}]),
             "bad_response: a content chunk without text"),
            (answer_body("ha", finish_reason="error"), "server_error: finish_reason error"),
        ],
    )  # fmt: skip
    def test_other_bodies_are_failures(
        self, server: ProtocolServer, body: object, message: str
    ) -> None:
        server.script(Reply(body=body))
        assert str(calls.failure_of(server.url)) == message


@pytest.mark.parametrize(("timeout", "connect"), [(60.0, 10.0), (3.0, 3.0)])
def test_connecting_takes_at_most_ten_seconds_of_the_timeout(
    server: ProtocolServer, timeout: float, connect: float
) -> None:
    timeouts: list[object] = []

    async def record(request: Any) -> None:
        timeouts.append(request.extensions["timeout"])

    async def run() -> None:
        model = MistralModel("mistral", "m", api_key=KEY, base_url=server.url, timeout=timeout)
        http = model.client.sdk_configuration.async_client
        http.event_hooks["request"].append(record)  # type: ignore[union-attr]
        try:
            await model.complete(REQUEST)
        finally:
            await model.close()

    server.script(answer())
    asyncio.run(run())
    assert timeouts == [{"connect": connect, "read": timeout, "write": timeout, "pool": timeout}]


def outcome_of(reply: Reply) -> Outcome:
    return read_error(reply.status, reply.body, model="model-test")


class TestErrors:
    @pytest.mark.parametrize(
        ("reply", "message"),
        [
            (failure(400, text="Prompt contains 65673 tokens, too large for model", code="3051"),
             "bad_request: HTTP 400 invalid_request_error"),
            (failure(422, text=invalid("body", "messages")),
             "bad_request: HTTP 422 invalid_request_error"),
            (Reply(status=422, body={"detail": "no list"}), "bad_request: HTTP 422"),
            (failure(429, "rate_limited", "Rate limit exceeded", code="1300"),
             "rate_limit: HTTP 429 rate_limited"),
            (Reply(status=429, body={"message": "Requests rate limit exceeded"}),
             "rate_limit: HTTP 429"),
            (failure(429, text="Service tier capacity exceeded for this model.", code="3505"),
             "overloaded: HTTP 429 invalid_request_error"),
            (failure(503, text="Service tier capacity exceeded for this model."),
             "overloaded: HTTP 503 invalid_request_error"),
            (failure(500, "internal_server_error", "Service unavailable.", code="1000"),
             "server_error: HTTP 500 internal_server_error"),
        ],
    )  # fmt: skip
    def test_failures_of_one_call(self, reply: Reply, message: str) -> None:
        outcome = outcome_of(reply)
        assert isinstance(outcome, CallError)
        assert str(outcome) == message

    @pytest.mark.parametrize(
        ("reply", "remedy"),
        [
            (Reply(status=401, body={"detail": "Unauthorized"}),
             "(with --base-url: PII_BENCH_API_KEY), and whether its plan has quota left"),
            (failure(400, "invalid_model", "Invalid model: model-test", code="1500"),
             "HTTP 400 invalid_model: check the model's name"),
            (failure(400, param="model", code="unknown_model"),
             "HTTP 400 unknown_model: check the model's name"),
            (failure(422, text=invalid("body", "temperature")),
             "`temperature`: run with `--temperature default`"),
            (Reply(status=422, body=invalid("body", "temperature")),
             "`temperature`: run with `--temperature default`"),
            (failure(400, param="temperature"), "run with `--temperature default`"),
            (failure(400, text="temperature is not supported by this model"),
             "run with `--temperature default`"),
            (failure(400, text="top_p must be 1 when using greedy sampling."),
             "run with `--temperature default`"),
            (failure(422, text=invalid("body", "response_format", "json_schema")),
             "run without `--output schema`"),
            (failure(400, text="Structured output is not enabled for this model"),
             "run without `--output schema`"),
            (failure(422, text=invalid("body", "max_tokens")), "run with a lower `--max-tokens`"),
        ],
    )  # fmt: skip
    def test_refusals_of_every_call(self, reply: Reply, remedy: str) -> None:
        outcome = outcome_of(reply)
        assert isinstance(outcome, ProviderRefusedError)
        assert remedy in str(outcome)


CASE = CASES["mistral"]


@pytest.fixture
def batches() -> Iterator[MistralBatches]:
    with MistralBatches() as batches:
        yield batches


def test_a_job_is_a_file_of_requests_and_a_job_for_it(batches: MistralBatches) -> None:
    CASE.ask(batches.url, lambda service: submit_and_read(service, [request()]))

    upload, create = batches.requests[:2]
    file_name, content = upload.body["file"]
    assert (upload.body["purpose"], file_name) == ("batch", f"{TAG}.jsonl")
    assert read_lines(content) == [
        {
            "custom_id": f"{TAG}-0",
            "body": request_body("model-test", request()),
        }
    ]
    assert create.body == {
        "input_files": ["file-1"],
        "model": "model-test",
        "endpoint": "/v1/chat/completions",
        "metadata": {"pii_bench": TAG},
        "timeout_hours": 24,
    }


def test_a_failed_job_has_the_results_so_far(batches: MistralBatches) -> None:
    batches.final = "FAILED"
    batches.outcome = lambda number: ABSENT if number else Item(text="in time")

    state, outcomes = CASE.ask(batches.url, lambda service: run_job(service, [request()] * 2))

    assert (state.ended, str(state.absent)) == (True, "batch_failed")
    [completion] = outcomes.values()
    assert isinstance(completion, Completion)
    assert completion.text == "in time"


def test_a_job_needs_only_an_id(batches: MistralBatches) -> None:
    batches.faults = {0: Fault(Reply(body={"id": "file-1"})), 1: Fault(Reply(body={"id": "j"}))}

    assert CASE.ask(batches.url, lambda service: service.submit([request()], TAG)) == "j"


def test_a_list_of_jobs_is_read_up_to_its_total(batches: MistralBatches) -> None:
    page = {"object": "list", "total": 4, "data": [{"id": "a"}, {"id": "b"}]}
    batches.faults = {number: Fault(Reply(body=page)) for number in range(9)}

    found = CASE.ask(batches.url, lambda service: service.find(TAG, since=0.0, requests=1))

    assert (found, len(batches.requests)) == (Absence.SURE, 2)
