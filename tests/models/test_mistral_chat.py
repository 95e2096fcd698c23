from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from pii_bench.models.base import Completion, Finish, Sampling, Usage
from pii_bench.models.batch import Absence
from pii_bench.models.mistral_chat import request_body
from tests.batch_protocols import MistralBatches
from tests.batch_server import ABSENT, Fault, Item
from tests.mistral_replies import answer, answer_body, text_chunk, thinking_chunk
from tests.models.adapters import REQUEST, SAMPLE_TEXT, SERVICES, Adapter, Asker
from tests.models.batch_cases import CASES, TAG, request, run_job
from tests.protocol_server import ProtocolServer, Reply

if TYPE_CHECKING:
    from collections.abc import Iterator


REFERENCE = {"type": "reference", "reference_ids": [1]}


@pytest.fixture
def adapter() -> Adapter:
    return SERVICES["mistral"]


@pytest.mark.parametrize(
    ("temperature", "sent"),
    [(0.0, {"temperature": 0.0, "top_p": 1.0}), (0.7, {"temperature": 0.7}), (None, {})],
)
def test_only_greedy_sampling_sets_top_p(temperature: float | None, sent: dict[str, float]) -> None:
    body = request_body("m", replace(REQUEST, sampling=Sampling(temperature)))
    assert {name: body[name] for name in ("temperature", "top_p") if name in body} == sent


class TestTelemetry:
    @pytest.mark.parametrize("mode", ["dedicated", "global", "false"])
    def test_none_is_sent(
        self, ask: Asker, server: ProtocolServer, monkeypatch: pytest.MonkeyPatch, mode: str
    ) -> None:
        # With `dedicated` the SDK would import a package that is not installed.
        monkeypatch.setenv("MISTRAL_SDK_TELEMETRY", mode)
        monkeypatch.setenv("MISTRAL_OTLP_TRACES_ENDPOINT", server.url)
        assert ask(answer()).text == "hello"
        assert [request.path for request in server.requests] == ["/v1/chat/completions"]
        assert "traceparent" not in server.requests[0].headers

    def test_an_unknown_mode_is_a_refusal(
        self, ask: Asker, server: ProtocolServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("MISTRAL_SDK_TELEMETRY", "of a later version")
        assert ask.failure(answer()).startswith("provider 'mistral': Invalid MISTRAL_SDK_TELEMETRY")
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
        self, ask: Asker, content: object, text: str, reasoning: str | None
    ) -> None:
        completion = ask(answer(content))
        assert (completion.text, completion.reasoning) == (text, reasoning)

    def test_details_of_the_usage_may_be_null(self, ask: Asker) -> None:
        assert ask(answer(usage={"prompt_tokens_details": None})).usage == Usage(11, 7)

    @pytest.mark.parametrize(
        "body",
        [
            {"choices": [{"message": {"content": "hello"}}]},
            {"choices": [{"message": {"content": "hello"}}], "usage": {}, "model": None},
            {**answer_body(), "usage": {}, "choices": [{"message": {"content": "hello"}}],
             "model": 1},
        ],
    )  # fmt: skip
    def test_only_the_message_is_required(self, ask: Asker, body: dict[str, Any]) -> None:
        assert ask(Reply(body=body)) == Completion("hello", Finish.UNKNOWN)

    def test_no_warning_quotes_an_answer_of_unknown_type(self, ask: Asker) -> None:
        # Warnings are errors in tests.
        unknown = answer([{"type": SAMPLE_TEXT, "text": SAMPLE_TEXT}], finish_reason="Achebe")
        assert ask(unknown).finish is Finish.UNKNOWN


CASE = CASES["mistral"]


@pytest.fixture
def batches() -> Iterator[MistralBatches]:
    with MistralBatches() as batches:
        yield batches


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
