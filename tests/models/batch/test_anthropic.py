from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pii_bench.errors import ProviderRefusedError
from pii_bench.models.base import CallError, Sampling
from pii_bench.models.batch import Absence
from tests.batch_protocols import AnthropicBatches, json_lines
from tests.batch_server import Answer, Fault, Item
from tests.models.batch.cases import CASES, SAMPLE_TEXT, TAG, request, submit_and_read

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pii_bench.models.base import Outcome

ANTHROPIC = CASES["anthropic"]
NOW = 1_800_000_000.0
HOUR = 3600.0


@pytest.fixture
def server() -> Iterator[AnthropicBatches]:
    with AnthropicBatches() as server:
        yield server


def find(server: AnthropicBatches, requests: int = 1) -> str | Absence:
    return ANTHROPIC.ask(
        server.url, lambda service: service.find(TAG, since=NOW, requests=requests)
    )


def add_ended(server: AnthropicBatches, *custom_ids: str) -> str:
    job = server.add_job({name: {} for name in custom_ids})
    server.look_at(job)
    return job


def read_one(server: AnthropicBatches, result: object) -> Outcome:
    """What a service makes of one result of a job."""
    server.faults = {2: Fault(Answer(body=json_lines([{"custom_id": "a", "result": result}])))}
    outcomes = ANTHROPIC.ask(server.url, lambda service: submit_and_read(service, [request()]))
    return outcomes["a"]


def test_a_job_is_one_call_with_all_requests(server: AnthropicBatches) -> None:
    ANTHROPIC.ask(server.url, lambda service: submit_and_read(service, [request()]))

    assert server.received[0].body == {
        "requests": [
            {
                "custom_id": f"{TAG}-0",
                "params": {
                    "model": "claude-test",
                    "max_tokens": 321,
                    "messages": [{"role": "user", "content": SAMPLE_TEXT}],
                    "system": "Be brief.",
                    "temperature": 0.0,
                },
            }
        ]
    }


@pytest.mark.parametrize(("temperature", "old"), [(0.0, True), (None, False)])
def test_a_temperature_is_sent_to_the_version_that_takes_one(
    server: AnthropicBatches, temperature: float | None, old: bool
) -> None:
    asked = request(sampling=Sampling(temperature=temperature))

    ANTHROPIC.ask(server.url, lambda service: submit_and_read(service, [asked]))

    create = server.received[0]
    assert (create.headers["anthropic-version"] == "2023-06-01") == old
    assert ("temperature" in create.body["requests"][0]["params"]) == old


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("invalid_request_error", "bad_request: invalid_request_error"),
        ("rate_limit_error", "rate_limit: rate_limit_error"),
        ("overloaded_error", "overloaded: overloaded_error"),
        ("api_error", "server_error: api_error"),
    ],
)
def test_an_error_of_a_request_is_judged_by_its_type(
    server: AnthropicBatches, code: str, told: str
) -> None:
    server.outcome = lambda _: Item("errored", code=code)

    outcomes = ANTHROPIC.ask(server.url, lambda service: submit_and_read(service, [request()]))

    [failure] = outcomes.values()
    assert isinstance(failure, CallError)
    assert str(failure) == told


def test_an_account_without_credit_is_a_refusal(server: AnthropicBatches) -> None:
    outcome = read_one(server, {"type": "errored", "error": {"error": {"type": "billing_error"}}})

    assert isinstance(outcome, ProviderRefusedError)
    assert "no credit" in str(outcome)


@pytest.mark.parametrize(
    ("result", "told"),
    [
        ({"type": "succeeded", "message": {}}, "bad_response: no content"),
        ({"type": "unheard_of"}, "bad_response: a result of unknown type"),
        (SAMPLE_TEXT, "bad_response: a result of unknown type"),
    ],
)
def test_a_result_without_an_answer_is_a_bad_response(
    server: AnthropicBatches, result: object, told: str
) -> None:
    outcome = read_one(server, result)

    assert isinstance(outcome, CallError)
    assert str(outcome) == told


def test_results_are_read_at_no_address_that_an_answer_names(server: AnthropicBatches) -> None:
    described: dict[str, Any] = {
        "id": "job-1",
        "processing_status": "ended",
        "request_counts": {"succeeded": 1, "processing": 0},
        "results_url": "https://elsewhere.invalid/results",
    }
    server.faults = {1: Fault(Answer(body=described))}

    ANTHROPIC.ask(server.url, lambda service: submit_and_read(service, [request()]))

    assert server.lines[-1] == "GET /v1/messages/batches/job-1/results"


def test_a_lost_job_is_the_one_whose_custom_ids_hold_the_tag(server: AnthropicBatches) -> None:
    add_ended(server, "somebody-0")
    ours = add_ended(server, f"{TAG}-0")
    add_ended(server, "else-0")

    assert find(server) == ours


def test_only_jobs_of_its_size_may_be_the_lost_one(server: AnthropicBatches) -> None:
    add_ended(server, f"{TAG}-0")
    server.add_job({"somebody-0": {}, "somebody-1": {}, "somebody-2": {}})

    assert find(server, requests=2) is Absence.SURE


def test_while_a_job_of_its_size_runs_it_may_be_the_lost_one(server: AnthropicBatches) -> None:
    server.looks = 1
    add_ended(server, "somebody-0")
    running = server.add_job({f"{TAG}-0": {}})

    assert find(server) is Absence.UNDECIDED
    assert find(server) == running


def test_jobs_from_long_before_are_not_looked_into(server: AnthropicBatches) -> None:
    server.clock = NOW - 2 * HOUR
    add_ended(server, f"{TAG}-0")
    server.clock = NOW - HOUR / 2
    add_ended(server, "somebody-0")

    assert find(server) is Absence.SURE
    assert server.lines == [
        "GET /v1/messages/batches",
        "GET /v1/messages/batches/job-2/results",
    ]


def test_an_archived_job_is_not_looked_into(server: AnthropicBatches) -> None:
    described = {"id": "job-1", "created_at": "2027-01-15T08:00:00Z", "archived_at": "2027-02-15"}
    server.faults = {0: Fault(Answer(body={"data": [described], "has_more": False}))}

    assert find(server) is Absence.SURE


def test_clocks_may_differ(server: AnthropicBatches) -> None:
    server.clock = NOW - HOUR / 2

    assert find(server) is Absence.SURE
    ours = add_ended(server, f"{TAG}-0")
    assert find(server) == ours


@pytest.mark.parametrize(
    "listed",
    [
        [],
        {"data": "none", "has_more": False},
        {"data": [{"id": "job-1"}], "has_more": False},
        {"data": [{"id": "job-1", "created_at": "today"}], "has_more": False},
        {"data": [{"id": "job-1", "created_at": "2027-01-15T08:00:00Z"}], "has_more": False},
    ],
)
def test_a_list_of_no_batches_is_a_bad_response(server: AnthropicBatches, listed: object) -> None:
    server.faults = {0: Fault(Answer(body=listed))}

    with pytest.raises(CallError, match="bad_response"):
        find(server)
