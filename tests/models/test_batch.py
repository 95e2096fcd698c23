from __future__ import annotations

import contextlib
import itertools
import json
import logging
import re
import traceback
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from pii_bench.errors import PiiBenchError, ProviderRefusedError
from pii_bench.models.base import CallError, Completion, Finish, Usage
from pii_bench.models.batch import RESULTS_GONE, Absence, UnknownJobError
from pii_bench.models.catalog import build_batch_service
from pii_bench.models.mistral_chat import request_body as mistral_body
from pii_bench.models.openai_compatible import OpenAICompatibleModel
from pii_bench.models.openai_compatible import request_body as openai_body
from pii_bench.models.service import LARGEST_BODY
from tests.anthropic_replies import error_body
from tests.batch_protocols import json_lines, read_lines, response
from tests.batch_server import ABSENT, CANCELLED, EXPIRED, BatchServer, Fault, Item
from tests.fakes import FakeModel
from tests.models.adapters import KEY, SAMPLE_TEXT
from tests.models.batch_cases import (
    CASES,
    TAG,
    Case,
    read,
    request,
    run_job,
    submit_and_poll,
    submit_and_read,
)
from tests.protocol_server import RESET, Reply

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pii_bench.models.base import Outcome
    from pii_bench.models.batch import BatchService

NOW = 1_800_000_000.0


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


@pytest.fixture
def server(case: Case) -> Iterator[BatchServer]:
    with case.serve() as server:
        yield server


def test_a_job_is_submitted_polled_and_read(case: Case, server: BatchServer) -> None:
    outcomes = case.ask(server.url, lambda service: submit_and_read(service, [request()] * 2))

    assert server.lines == list(case.lines)
    assert {call.headers["authorization"] for call in server.requests} == {f"Bearer {KEY}"}
    assert list(server.jobs["job-1"].requests) == [f"{TAG}-0", f"{TAG}-1"]
    expected = Completion(
        "answer 0", Finish.STOP, model="scripted-model", usage=Usage(11, 7), batched=True
    )
    assert outcomes == {f"{TAG}-0": expected, f"{TAG}-1": replace(expected, text="answer 1")}


FILES: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    (
        "openai",
        {
            "method": "POST",
            "url": "/v1/chat/completions",
            "body": openai_body("model-test", request(), endpoint="http://localhost:8000/v1"),
        },
        {
            "input_file_id": "file-1",
            "endpoint": "/v1/chat/completions",
            "completion_window": "24h",
            "metadata": {"pii_bench": TAG},
        },
    ),
    (
        "mistral",
        {"body": mistral_body("model-test", request())},
        {
            "input_files": ["file-1"],
            "model": "model-test",
            "endpoint": "/v1/chat/completions",
            "metadata": {"pii_bench": TAG},
            "timeout_hours": 24,
        },
    ),
]


@pytest.mark.parametrize(("case", "line", "created"), FILES, indirect=["case"])
def test_a_job_is_a_file_of_requests_and_a_description(
    case: Case, server: BatchServer, line: dict[str, Any], created: dict[str, Any]
) -> None:
    case.ask(server.url, lambda service: submit_and_read(service, [request()]))

    upload, create = server.requests[:2]
    file_name, content = upload.body["file"]
    assert (upload.body["purpose"], file_name) == ("batch", f"{TAG}.jsonl")
    assert read_lines(content) == [{"custom_id": f"{TAG}-0", **line}]
    assert create.body == created


def test_results_can_be_read_again(case: Case, server: BatchServer) -> None:
    async def read_twice(service: BatchService) -> list[dict[str, Outcome]]:
        job, _ = await submit_and_poll(service, [request()] * 2)
        return [await read(service, job) for _ in range(2)]

    first, second = case.ask(server.url, read_twice)
    assert first == second
    assert len(first) == 2


def test_a_running_job_has_its_number_of_requests(case: Case, server: BatchServer) -> None:
    server.looks = 1

    async def poll_twice(service: BatchService) -> list[tuple[bool, int, int]]:
        job = await service.submit([request()] * 3, TAG)
        states = [await service.poll(job) for _ in range(2)]
        return [(state.ended, state.finished, state.total) for state in states]

    assert case.ask(server.url, poll_twice) == [(False, 0, 3), (True, 3, 3)]


def test_requests_fail_independently(case: Case, server: BatchServer) -> None:
    # Unicode's line separators do not end a line of the results.
    text = "one\u2028two\x85three\x0bfour"
    items = [Item(text=text), Item("errored", status=500, code="api_error"), ABSENT]
    server.outcome = lambda number: items[number]

    outcomes = case.ask(server.url, lambda service: submit_and_read(service, [request()] * 3))

    assert sorted(outcomes) == [f"{TAG}-0", f"{TAG}-1"]
    good, bad = outcomes[f"{TAG}-0"], outcomes[f"{TAG}-1"]
    assert isinstance(good, Completion)
    assert good.text == text
    assert isinstance(bad, CallError)
    assert bad.kind == "server_error"
    assert bad.detail.endswith("api_error")


def test_an_error_of_every_request_is_a_refusal(case: Case, server: BatchServer) -> None:
    server.outcome = lambda _: Item("errored", status=404, code="not_found_error")

    outcomes = case.ask(server.url, lambda service: submit_and_read(service, [request()]))

    [refusal] = outcomes.values()
    assert isinstance(refusal, ProviderRefusedError)
    assert "check the model's name" in str(refusal)


@pytest.mark.parametrize(("item", "kind"), [(EXPIRED, "expired"), (CANCELLED, "cancelled")])
def test_a_request_that_was_not_executed_has_the_reason(
    case: Case, server: BatchServer, item: Item, kind: str
) -> None:
    server.outcome = lambda number: item if number else Item(text="in time")
    server.final = {
        ("openai", "expired"): "expired",
        ("openai", "cancelled"): "cancelled",
        ("mistral", "expired"): "TIMEOUT_EXCEEDED",
        ("mistral", "cancelled"): "CANCELLED",
    }.get((case.name, kind), "")

    state, outcomes = case.ask(server.url, lambda service: run_job(service, [request()] * 2))

    answer, failure = outcomes[f"{TAG}-0"], outcomes.get(f"{TAG}-1", state.absent)
    assert isinstance(answer, Completion)
    assert answer.text == "in time"
    assert isinstance(failure, CallError)
    assert failure.kind == kind


def test_a_request_without_a_result_is_a_bad_response(case: Case, server: BatchServer) -> None:
    _, state = case.ask(server.url, lambda service: submit_and_poll(service, [request()]))

    assert str(state.absent) == "bad_response: not among the results of its batch"


@pytest.mark.parametrize(
    ("tags", "found"),
    [(["tag0", "tag1", "tag2", "tag3", "tag4"], "job-2"), (["tag10"], Absence.SURE)],
)
def test_a_job_is_found_by_its_tag(
    case: Case, server: BatchServer, tags: list[str], found: str | Absence
) -> None:
    async def find(service: BatchService) -> str | Absence:
        for tag in tags:
            await submit_and_poll(service, [request()] * 2, tag)
        return await service.find("tag1", since=NOW, requests=2)

    assert case.ask(server.url, find) == found


def test_an_unknown_job_is_an_error(case: Case, server: BatchServer) -> None:
    with pytest.raises(UnknownJobError, match=f"provider '{case.name}' knows no batch 'job-9'"):
        case.ask(server.url, lambda service: service.poll("job-9"))


def test_deleted_results_are_an_error(case: Case, server: BatchServer) -> None:
    server.faults = {len(case.lines) - 1: Fault(Reply(404, {"error": {}}))}

    with pytest.raises(CallError) as raised:
        case.ask(server.url, lambda service: submit_and_read(service, [request()]))

    assert raised.value.kind == RESULTS_GONE


def failures_at(
    case: Case, server: BatchServer, answer: Reply, *, timeout: float = 5.0
) -> list[Exception]:
    """Return the errors of jobs of which the first, the second, ... call fails."""

    async def fail(service: BatchService) -> list[Exception]:
        errors: list[Exception] = []
        for number in range(len(case.lines)):
            server.jobs.clear()
            first = len(server.requests) + number
            # aiohttp repeats a GET once if the server has closed the connection.
            server.faults = {first: Fault(answer), first + 1: Fault(answer)}
            try:
                await submit_and_read(service, [request()])
            except (CallError, ProviderRefusedError) as error:
                errors.append(error)
        return errors

    errors = case.ask(server.url, fail, timeout=timeout)
    assert len(errors) == len(case.lines)
    return errors


@pytest.mark.parametrize(
    ("answer", "timeout", "pattern"),
    [
        (RESET, 5.0, "connection$"),
        (Reply(200, {"id": "job-1"}, cut=3), 5.0, "connection$"),
        (Reply(delay=0.2), 0.1, "timeout$"),
        (Reply(429, {"error": {}}, {"retry-after": "7"}), 5.0, "rate_limit: HTTP 429$"),
        (Reply(500, {"error": {}}), 5.0, "server_error: HTTP 500$"),
        (Reply(200, ["odd"]), 5.0, "bad_response: "),
        (Reply(401, {"error": {}}), 5.0, "provider '.*' refuses model 'model-test': HTTP 401: "),
        # Including an error instead of the results.
        (Reply(500, b" " * (LARGEST_BODY + 1)), 30.0, "bad_response: more than 32 MB$"),
    ],
    ids=["broken", "cut", "slow", "busy", "down", "odd", "refused", "large"],
)
def test_a_failed_call(
    case: Case, server: BatchServer, answer: Reply, timeout: float, pattern: str
) -> None:
    for error in failures_at(case, server, answer, timeout=timeout):
        assert re.match(pattern, str(error))
        # A refused key stops the run.
        assert isinstance(error, ProviderRefusedError) == pattern.startswith("provider")
        if isinstance(error, CallError):
            assert error.retry_after == (7.0 if error.kind == "rate_limit" else None)


def test_a_failed_submission_is_unsent_if_there_is_certainly_no_job(
    case: Case, server: BatchServer
) -> None:
    def failure(url: str) -> CallError:
        with pytest.raises(CallError) as caught:
            case.ask(url, lambda service: service.submit([request()], TAG))
        return caught.value

    uploads = "files" in case.lines[0]
    server.faults = dict.fromkeys((0, 2), Fault(Reply(500, {})))
    # The first call is an upload, or the only one of a submission.
    assert failure(server.url).unsent == uploads
    if uploads:
        assert not failure(server.url).unsent
    # The connection is lost after the last call was sent.
    server.faults = {len(server.requests) + uploads: Fault(RESET)}
    assert not failure(server.url).unsent
    assert failure("http://localhost:1").unsent


def test_errors_and_logs_contain_neither_key_nor_text(
    case: Case, server: BatchServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    answers = [
        RESET,
        Reply(401, {"error": {"message": f"no such key {KEY} for {SAMPLE_TEXT}", "code": "x"}}),
        Reply(500, {"message": SAMPLE_TEXT, "error": SAMPLE_TEXT}),
        Reply(200, f"{SAMPLE_TEXT} {KEY}".encode()),
    ]
    for answer in answers:
        for error in failures_at(case, server, answer):
            assert error.__context__ is None
            output = "".join(traceback.format_exception(error)) + caplog.text
            assert KEY not in output
            assert SAMPLE_TEXT not in output


def test_requests_are_not_larger_than_their_size(case: Case, server: BatchServer) -> None:
    requests = [request("é" * 100), request()]

    async def measure(service: BatchService) -> int:
        await service.submit(requests, TAG)
        return sum(map(service.size, requests))

    sizes = case.ask(server.url, measure)

    sent = server.requests[0].body
    content = sent["file"][1] if "file" in sent else json.dumps(sent).encode()
    assert len(content) <= sizes


def errored(kind: str, text: str = "") -> dict[str, Any]:
    return {"type": "errored", "error": error_body(kind, text)}


LINES: list[tuple[str, dict[str, Any], str | Completion]] = [
    ("openai", {"response": response(400, {"error": {"code": "invalid_value"}})},
     "bad_request: HTTP 400 invalid_value"),
    ("openai", {"response": response(400, {"error": {"code": "content_filter"}})},
     Completion("", Finish.FILTER, batched=True)),
    ("openai", {"response": None, "error": {"code": "batch_expired", "message": "late"}},
     "expired: batch_expired"),
    ("openai", {"response": None, "error": {"code": "batch_cancelled"}},
     "cancelled: batch_cancelled"),
    ("openai", {"response": None, "error": {"code": "batch_lost"}}, "server_error: batch_lost"),
    ("openai", {"response": None, "error": {"code": SAMPLE_TEXT}}, "server_error"),
    ("openai", {"response": None, "error": None}, "bad_response: a result without an answer"),
    ("openai", {"response": response(200, {})}, "bad_response: no choices"),
    ("anthropic", {"result": {"type": "succeeded", "message": {}}}, "bad_response: no content"),
    ("anthropic", {"result": errored("overloaded_error")}, "overloaded: overloaded_error"),
    ("anthropic", {"result": errored("rate_limit_error")}, "rate_limit: rate_limit_error"),
    ("anthropic", {"result": errored("invalid_request_error")},
     "bad_request: invalid_request_error"),
    ("anthropic", {"result": errored("of_a_later_version")}, "server_error: of_a_later_version"),
    ("anthropic", {"result": {"type": "errored", "error": None}}, "server_error"),
    ("anthropic",
     {"result": errored("invalid_request_error", "blocked by content filtering policy")},
     Completion("", Finish.FILTER, batched=True)),
    ("anthropic", {"result": {"type": "unheard_of"}},
     "bad_response: a result of unknown type"),
    ("mistral", {"response": response(400, {"type": "invalid_value"}), "error": None},
     "bad_request: HTTP 400 invalid_value"),
    ("mistral", {"response": response(400, '{"type": "invalid_value"}'), "error": None},
     "bad_request: HTTP 400 invalid_value"),
    ("mistral", {"response": None, "error": SAMPLE_TEXT}, "server_error: an error of the batch"),
]  # fmt: skip


@pytest.mark.parametrize(("case", "line", "expected"), LINES, indirect=["case"])
def test_a_line_of_results_is_an_answer_or_an_error(
    case: Case, server: BatchServer, line: dict[str, Any], expected: str | Completion
) -> None:
    content = json_lines([{"custom_id": "a", **line}])
    # A wrong Content-Type.
    reply = Reply(body=content, headers={"content-type": "application/json"})
    server.faults = {len(case.lines) - 1: Fault(reply)}

    outcomes = case.ask(server.url, lambda service: submit_and_read(service, [request()]))

    outcome = outcomes["a"]
    assert (str(outcome) if isinstance(outcome, CallError) else outcome) == expected


@pytest.mark.parametrize(
    ("case", "status"),
    [
        *(("openai", name) for name in ("validating", "finalizing", "cancelling", "unheard_of")),
        *(("mistral", name) for name in ("QUEUED", "CANCELLATION_REQUESTED", "UNHEARD_OF")),
    ],
    indirect=["case"],
)
def test_jobs_with_other_statuses_have_not_ended(
    case: Case, server: BatchServer, status: str
) -> None:
    server.final = status

    _, state = case.ask(server.url, lambda service: submit_and_poll(service, [request()]))

    assert not state.ended


NO_LIST = "no list of batches"
DATED = {"id": "job-1", "created_at": "2027-01-15T08:00:00Z"}


@pytest.mark.parametrize(
    ("case", "listed", "message"),
    [
        *((name, [], NO_LIST) for name in CASES),
        *((name, {"data": "none"}, NO_LIST) for name in CASES),
        ("mistral", {"data": []}, NO_LIST),
        *(
            ("anthropic", {"data": [job], "has_more": False}, f"a batch without a {missing}")
            for job, missing in (
                ({"id": "job-1"}, "date"),
                (DATED | {"created_at": "today"}, "date"),
                (DATED, "status"),
            )
        ),
    ],
    indirect=["case"],
)
def test_a_wrong_list_of_jobs_is_a_bad_response(
    case: Case, server: BatchServer, listed: object, message: str
) -> None:
    server.faults = {0: Fault(Reply(body=listed))}

    with pytest.raises(CallError, match=f"^bad_response: {message}$"):
        case.ask(server.url, lambda service: service.find(TAG, since=NOW, requests=1))


def test_a_model_without_a_batch_api_is_refused() -> None:
    deepseek = OpenAICompatibleModel("deepseek", "chat", api_key=KEY, base_url="http://127.0.0.1")

    for model in (FakeModel(name="fake/one"), deepseek):
        with pytest.raises(PiiBenchError, match=f"model '{model.name}' has no batch API"):
            build_batch_service(model)


@pytest.mark.parametrize("line", [b"[]", b"{", b"{}", b'{"custom_id": 3}', b"\xff"])
def test_a_line_of_results_without_a_custom_id_is_a_bad_response(
    case: Case, server: BatchServer, line: bytes
) -> None:
    results = b'{"custom_id": "a"}\n\n' + line + b"\n"
    server.faults = {len(case.lines) - 1: Fault(Reply(200, results))}

    with pytest.raises(CallError, match="bad_response: a line of the results has no custom id"):
        case.ask(server.url, lambda service: submit_and_read(service, [request()]))


def test_the_largest_body_is_a_limit_for_each_line_of_results(
    case: Case, server: BatchServer
) -> None:
    server.outcome = lambda _: Item(text="a" * (LARGEST_BODY // 2))
    requests = [request()] * 2

    outcomes = case.ask(server.url, lambda service: submit_and_read(service, requests), timeout=30)

    assert len(outcomes) == 2

    line = Reply(200, b'{"custom_id": "' + b"a" * LARGEST_BODY)
    server.faults = {len(server.requests) + len(case.lines) - 1: Fault(line)}
    with pytest.raises(CallError, match="bad_response: a line of the results is too long"):
        case.ask(server.url, lambda service: submit_and_read(service, [request()]), timeout=30)


@pytest.mark.parametrize("odd", [None, [["a"]], 10**400, "\ud83d"], ids=range(4))
def test_any_response_is_read_or_a_failure(case: Case, server: BatchServer, odd: object) -> None:
    keys = (
        *("id", "status", "request_counts", "output_file", "output_file_id", "created_at"),
        *("total_requests", "completed_requests", "errors", "metadata", "results_url"),
    )
    described = [
        odd,
        dict.fromkeys(keys, odd),
        dict.fromkeys(keys, odd) | {"id": "job-1", "processing_status": "ended"},
        {"id": "job-1", "processing_status": odd, "request_counts": {"total": odd, "failed": odd}},
        {"data": odd, "has_more": False, "total": odd},
        {"data": [odd, {"id": odd}, {"id": "a", "created_at": odd, "metadata": odd}], "total": 1},
    ]
    results = [
        {"custom_id": "a", "response": odd, "error": odd, "result": odd},
        {"custom_id": "a", "response": {"status_code": odd, "body": odd}},
        {"custom_id": "a", "response": {"status_code": 200, "body": odd}},
        {"custom_id": "a", "response": {"status_code": 400, "body": {"error": {"code": odd}}}},
        {"custom_id": "a", "error": {"code": odd}, "result": {"type": odd, "error": odd}},
        {"custom_id": "a", "result": {"type": "errored", "error": {"error": {"type": odd}}}},
        {"custom_id": "a", "result": {"type": "succeeded", "message": odd}},
    ]

    async def call_all(service: BatchService) -> None:
        job, _ = await submit_and_poll(service, [request()])
        await read(service, job)
        await service.find(TAG, since=NOW, requests=1)

    faults = list(itertools.product(described, range(len(case.lines) + 1)))
    faults += [(line, len(case.lines) - 1) for line in results]

    async def fail_each(service: BatchService) -> None:
        for line, number in faults:
            server.jobs.clear()
            server.faults = {len(server.requests) + number: Fault(Reply(200, line))}
            with contextlib.suppress(CallError, ProviderRefusedError, UnknownJobError):
                await call_all(service)

    case.ask(server.url, fail_each)
    assert len(server.requests) > len(faults)
