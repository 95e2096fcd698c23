from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from pii_bench.errors import ProviderRefusedError
from pii_bench.models.base import CallError, Completion, Finish
from pii_bench.models.catalog import build_batch_service
from pii_bench.models.openai_compatible import OpenAICompatibleModel
from tests.batch_protocols import OpenAIBatches, json_lines, read_lines
from tests.batch_server import Answer, Fault, Item
from tests.models.batch.cases import CASES, KEY, SAMPLE_TEXT, TAG, read, request, submit_and_read

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pii_bench.models.base import Outcome
    from pii_bench.models.batch import BatchService, BatchState

OPENAI = CASES["openai"]


@pytest.fixture
def server() -> Iterator[OpenAIBatches]:
    with OpenAIBatches() as server:
        yield server


async def submit_and_look(service: BatchService) -> BatchState:
    return await service.poll(await service.submit([request()], TAG))


def read_one(server: OpenAIBatches, line: dict[str, Any]) -> Outcome:
    """What a service makes of one line of a job's answers."""
    server.faults = {4: Fault(Answer(body=json_lines([{"custom_id": "a", **line}])))}
    outcomes = OPENAI.ask(server.url, lambda service: submit_and_read(service, [request()]))
    return outcomes["a"]


def test_a_job_is_a_file_of_requests_and_a_batch_of_it(server: OpenAIBatches) -> None:
    OPENAI.ask(server.url, lambda service: submit_and_read(service, [request()]))

    upload, create = server.received[:2]
    file_name, content = upload.body["file"]
    assert (upload.body["purpose"], file_name) == ("batch", f"{TAG}.jsonl")
    assert read_lines(content) == [
        {
            "custom_id": f"{TAG}-0",
            "method": "POST",
            "url": "/v1/chat/completions",
            "body": {
                "model": "gpt-test",
                "messages": [
                    {"role": "system", "content": "Be brief."},
                    {"role": "user", "content": SAMPLE_TEXT},
                ],
                "max_tokens": 321,
                "temperature": 0.0,
            },
        }
    ]
    assert create.body == {
        "input_file_id": "file-1",
        "endpoint": "/v1/chat/completions",
        "completion_window": "24h",
        "metadata": {"pii_bench": TAG},
    }


def test_openai_itself_is_asked_with_its_own_parameters() -> None:
    async def size_of(base_url: str) -> int:
        model = OpenAICompatibleModel("openai", "gpt-test", api_key=KEY, base_url=base_url)
        try:
            return build_batch_service(model).size(request())
        finally:
            await model.close()

    # Its `max_completion_tokens` is longer than the `max_tokens` of all others.
    other = asyncio.run(size_of("https://models.example/v1"))
    assert asyncio.run(size_of("https://api.openai.com/v1")) == other + len("_completion")


@pytest.mark.parametrize("status", ["validating", "finalizing", "cancelling", "unheard_of"])
def test_a_job_runs_until_its_status_says_otherwise(server: OpenAIBatches, status: str) -> None:
    server.final = status

    assert not OPENAI.ask(server.url, submit_and_look).ended


@pytest.mark.parametrize("code", ["token_limit_exceeded", "invalid_json_line"])
def test_a_job_that_is_refused_whole_says_why(server: OpenAIBatches, code: str) -> None:
    server.final, server.outcome = "failed", lambda _: Item(code=code)

    state = OPENAI.ask(server.url, submit_and_look)

    assert state.ended
    assert isinstance(state.absent, ProviderRefusedError)
    assert f"provider 'openai' refuses model 'gpt-test': batch failed {code}: " in str(state.absent)
    assert ("--limit" in str(state.absent)) == (code == "token_limit_exceeded")


def test_a_job_that_is_refused_whole_has_no_results(server: OpenAIBatches) -> None:
    server.final = "failed"

    assert not OPENAI.ask(server.url, lambda service: submit_and_read(service, [request()]))


@pytest.mark.parametrize(
    ("status", "error", "kind", "detail"),
    [
        (400, {"code": "invalid_value"}, "bad_request", "HTTP 400 invalid_value"),
        (429, {"code": "rate_limit_exceeded"}, "rate_limit", "HTTP 429 rate_limit_exceeded"),
        (503, {"code": None}, "overloaded", "HTTP 503"),
    ],
)
def test_an_error_of_a_request_is_judged_as_one_of_a_call(
    server: OpenAIBatches, status: int, error: dict[str, Any], kind: str, detail: str
) -> None:
    outcome = read_one(server, {"response": {"status_code": status, "body": {"error": error}}})

    assert isinstance(outcome, CallError)
    assert (outcome.kind, outcome.detail) == (kind, detail)


def test_a_filtered_prompt_is_an_answer_that_a_batch_brought(server: OpenAIBatches) -> None:
    error = {"code": "content_filter", "message": SAMPLE_TEXT}
    outcome = read_one(server, {"response": {"status_code": 400, "body": {"error": error}}})

    assert outcome == Completion("", Finish.FILTER, batched=True)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ({"error": {"code": "batch_expired", "message": "late"}}, "expired: batch_expired"),
        ({"error": {"code": "batch_cancelled"}}, "cancelled: batch_cancelled"),
        ({"error": {"code": "batch_lost"}}, "server_error: batch_lost"),
        ({"error": {"code": SAMPLE_TEXT}}, "server_error"),
        ({"response": None, "error": None}, "bad_response: a result without an answer"),
        ({"response": {"status_code": 200, "body": {}}}, "bad_response: no choices"),
    ],
)
def test_a_result_without_an_answer_says_why(
    server: OpenAIBatches, line: dict[str, Any], told: str
) -> None:
    outcome = read_one(server, {"response": None} | line)

    assert isinstance(outcome, CallError)
    assert str(outcome) == told


def test_a_job_is_read_again_from_its_start(server: OpenAIBatches) -> None:
    async def twice(service: BatchService) -> list[list[str]]:
        job = await service.submit([request()] * 2, TAG)
        await service.poll(job)
        return [sorted(await read(service, job)) for _ in range(2)]

    assert OPENAI.ask(server.url, twice) == [[f"{TAG}-0", f"{TAG}-1"]] * 2


def test_lines_are_ascii(server: OpenAIBatches) -> None:
    OPENAI.ask(server.url, lambda service: submit_and_read(service, [request("\u2028é")]))

    _, content = server.received[0].body["file"]
    assert content.isascii()
    assert json.loads(content)["body"]["messages"][1]["content"] == "\u2028é"
