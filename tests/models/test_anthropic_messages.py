from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pii_bench.models.anthropic_messages import read_completion, request_body
from pii_bench.models.base import Message, Request, Sampling, Usage
from pii_bench.models.batch import Absence
from tests.anthropic_replies import message, message_body, text_block, thinking_block
from tests.batch_protocols import AnthropicBatches
from tests.batch_server import Fault
from tests.models.adapters import MESSAGES, SERVICES, Adapter, Asker
from tests.models.batch_cases import CASES, TAG, request, submit_and_read
from tests.protocol_server import ProtocolServer, Reply

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pii_bench.models.base import Role


@pytest.fixture
def adapter() -> Adapter:
    return SERVICES["anthropic"]


@pytest.mark.parametrize(
    ("temperature", "version"),
    # The last version that has a temperature, and the newest one.
    [(0.0, "2023-06-01"), (None, "2026-10-21")],
)
def test_the_version_depends_on_the_temperature(
    ask: Asker, server: ProtocolServer, temperature: float | None, version: str
) -> None:
    sampling = Sampling(temperature, max_tokens=128_000)
    ask(message(), request=Request("s1", "naive", MESSAGES, sampling))
    (request,) = server.requests
    assert request.headers["anthropic-version"] == version
    # No streaming either, however long the answer may be.
    sent = {"temperature"} if temperature is not None else set()
    assert request.body.keys() == {"model", "max_tokens", "system", "messages"} | sent


@pytest.mark.parametrize(
    ("roles", "system", "sent"),
    [
        (["user", "assistant", "user"], None, [0, 1, 2]),
        (["system", "user", "system"], "0\n\n2", [1]),
    ],
)
def test_system_prompts_are_joined_and_other_messages_keep_their_order(
    roles: list[Role], system: str | None, sent: list[int]
) -> None:
    messages = tuple(Message(role, str(number)) for number, role in enumerate(roles))
    body = request_body("m", Request("s", "p", messages, Sampling()))
    assert body.get("system") == system
    assert body["messages"] == [{"role": roles[number], "content": str(number)} for number in sent]


def test_no_telemetry_span_is_opened(ask: Asker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_OPEN_TELEMETRY_TRACES_CONTENT_MODE", "content")
    tracers: list[object] = []
    monkeypatch.setattr("opentelemetry.trace.get_tracer", tracers.append)
    assert ask(message()).text == "hello"
    assert tracers == []


class TestAnswers:
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

    @pytest.mark.parametrize(
        ("details", "usage"),
        [
            # The input includes tokens read from a cache or written to it.
            ({"cache_read_input_tokens": 100, "cache_creation_input_tokens": 20,
              "output_tokens_details": {"thinking_tokens": 5}},
             Usage(131, 7, reasoning_tokens=5, cached_tokens=100)),
            ({"cache_read_input_tokens": None, "output_tokens_details": None}, Usage(11, 7)),
        ],
    )  # fmt: skip
    def test_details_of_the_usage(self, details: dict[str, object], usage: Usage) -> None:
        assert read_completion(message_body(usage=details)).usage == usage


CASE = CASES["anthropic"]
NOW = 1_800_000_000.0
HOUR = 3600.0


@pytest.fixture
def batches() -> Iterator[AnthropicBatches]:
    with AnthropicBatches() as batches:
        yield batches


def find(batches: AnthropicBatches) -> str | Absence:
    return CASE.ask(batches.url, lambda service: service.find(TAG, since=NOW, requests=1))


def add_ended_job(batches: AnthropicBatches, *custom_ids: str) -> str:
    job = batches.add_job({name: {} for name in custom_ids})
    batches.look_at(job)
    return job


@pytest.mark.parametrize(("temperature", "old"), [(0.0, True), (None, False)])
def test_a_job_is_one_call_with_the_version_of_its_requests(
    batches: AnthropicBatches, temperature: float | None, old: bool
) -> None:
    sampled = request(sampling=Sampling(temperature=temperature))

    CASE.ask(batches.url, lambda service: submit_and_read(service, [sampled]))

    create = batches.requests[0]
    line = {"custom_id": f"{TAG}-0", "params": request_body("model-test", sampled)}
    assert create.body == {"requests": [line]}
    assert ("temperature" in line["params"]) == old
    assert (create.headers["anthropic-version"] == "2023-06-01") == old


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
    add_ended_job(batches, f"{TAG}-0", f"{TAG}-1")
    batches.add_job({"somebody-0": {}, "somebody-1": {}, "somebody-2": {}})

    assert find(batches) is Absence.SURE


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
    assert batches.lines == ["GET /v1/messages/batches", "GET /v1/messages/batches/job-2/results"]


def test_archived_jobs_are_not_searched(batches: AnthropicBatches) -> None:
    described = {"id": "job-1", "created_at": "2027-01-15T08:00:00Z", "archived_at": "2027-02-15"}
    batches.faults = {0: Fault(Reply(body={"data": [described], "has_more": False}))}

    assert find(batches) is Absence.SURE


def test_the_clock_of_the_provider_may_differ(batches: AnthropicBatches) -> None:
    batches.clock = NOW - HOUR / 2

    assert find(batches) is Absence.SURE
    ours = add_ended_job(batches, f"{TAG}-0")
    assert find(batches) == ours
