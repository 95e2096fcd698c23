from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from pii_bench.models.base import CallError, Completion
from pii_bench.models.batch import Absence
from tests.batch_protocols import MistralBatches, chat_completion, json_lines, read_lines
from tests.batch_server import ABSENT, Answer, Fault, Item
from tests.models.batch.cases import CASES, SAMPLE_TEXT, TAG, request, submit_and_read

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pii_bench.models.base import Outcome
    from pii_bench.models.batch import BatchService, BatchState

MISTRAL = CASES["mistral"]


@pytest.fixture
def server() -> Iterator[MistralBatches]:
    with MistralBatches() as server:
        yield server


async def submit_and_look(service: BatchService) -> BatchState:
    return await service.poll(await service.submit([request()] * 2, TAG))


def read_one(
    server: MistralBatches, line: dict[str, Any], content_type: str = "application/octet-stream"
) -> Outcome:
    """What a service makes of one line of a job's answers."""
    content = json_lines([{"custom_id": "a", **line}])
    server.faults = {4: Fault(Answer(body=content, headers={"content-type": content_type}))}
    outcomes = MISTRAL.ask(server.url, lambda service: submit_and_read(service, [request()]))
    return outcomes["a"]


def test_a_job_is_a_file_of_requests_and_a_job_for_it(server: MistralBatches) -> None:
    MISTRAL.ask(server.url, lambda service: submit_and_read(service, [request()]))

    upload, create = server.received[:2]
    file_name, content = upload.body["file"]
    assert (upload.body["purpose"], file_name) == ("batch", f"{TAG}.jsonl")
    assert read_lines(content) == [
        {
            "custom_id": f"{TAG}-0",
            "body": {
                "model": "mistral-test",
                "messages": [
                    {"role": "system", "content": "Be brief."},
                    {"role": "user", "content": SAMPLE_TEXT},
                ],
                "max_tokens": 321,
                "temperature": 0.0,
                "top_p": 1.0,
            },
        }
    ]
    assert create.body == {
        "input_files": ["file-1"],
        "model": "mistral-test",
        "endpoint": "/v1/chat/completions",
        "metadata": {"pii_bench": TAG},
        "timeout_hours": 24,
    }


@pytest.mark.parametrize("status", ["QUEUED", "CANCELLATION_REQUESTED", "UNHEARD_OF"])
def test_a_job_runs_until_its_status_says_otherwise(server: MistralBatches, status: str) -> None:
    server.final = status

    assert not MISTRAL.ask(server.url, submit_and_look).ended


def test_a_job_that_failed_keeps_what_it_has(server: MistralBatches) -> None:
    server.final = "FAILED"
    server.outcome = lambda number: ABSENT if number else Item(text="in time")

    state = MISTRAL.ask(server.url, submit_and_look)
    outcomes = MISTRAL.ask(server.url, lambda service: submit_and_read(service, [request()] * 2))

    assert state.ended
    assert str(state.absent) == "batch_failed"
    [completion] = outcomes.values()
    assert isinstance(completion, Completion)
    assert completion.text == "in time"


def test_results_may_come_as_any_type(server: MistralBatches) -> None:
    answered = {"response": {"status_code": 200, "body": chat_completion("é\u2028")}}

    outcome = read_one(server, answered, "application/json")

    assert isinstance(outcome, Completion)
    assert outcome.text == "é\u2028"


def test_an_answer_may_lack_what_the_sdk_asks_for(server: MistralBatches) -> None:
    server.faults = {0: Fault(Answer(body={"id": "file-1"})), 1: Fault(Answer(body={"id": "j"}))}

    assert MISTRAL.ask(server.url, lambda service: service.submit([request()], TAG)) == "j"


@pytest.mark.parametrize("as_text", [False, True])
def test_an_error_of_a_request_is_judged_as_one_of_a_call(
    server: MistralBatches, as_text: bool
) -> None:
    error = {"object": "error", "message": SAMPLE_TEXT, "type": "invalid_value", "code": None}
    body = json.dumps(error) if as_text else error

    outcome = read_one(server, {"response": {"status_code": 400, "body": body}, "error": None})

    assert isinstance(outcome, CallError)
    assert str(outcome) == "bad_request: HTTP 400 invalid_value"


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ({"response": None, "error": SAMPLE_TEXT}, "server_error: an error of the batch"),
        ({"error": {"message": SAMPLE_TEXT}}, "server_error: an error of the batch"),
        ({"response": {"status_code": 200, "body": {}}}, "bad_response: no choices"),
    ],
)
def test_a_result_without_an_answer_says_why(
    server: MistralBatches, line: dict[str, Any], told: str
) -> None:
    outcome = read_one(server, line)

    assert isinstance(outcome, CallError)
    assert str(outcome) == told


@pytest.mark.parametrize("listed", [[], {"data": []}, {"data": "none", "total": 1}])
def test_a_list_of_no_jobs_is_a_bad_response(server: MistralBatches, listed: object) -> None:
    server.faults = {0: Fault(Answer(body=listed))}

    with pytest.raises(CallError, match="bad_response: no list of batches"):
        MISTRAL.ask(server.url, lambda service: service.find(TAG, since=0.0, requests=1))


def test_a_list_that_never_ends_is_read_to_its_total(server: MistralBatches) -> None:
    page = {"object": "list", "total": 4, "data": [{"id": "a"}, {"id": "b"}]}
    server.faults = {number: Fault(Answer(body=page)) for number in range(9)}

    found = MISTRAL.ask(server.url, lambda service: service.find(TAG, since=0.0, requests=1))

    assert (found, len(server.received)) == (Absence.SURE, 2)
