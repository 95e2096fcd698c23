from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_bench.jsonl import RecordError
from pii_bench.models.base import CallError, Completion, Draws, Finish, Usage
from pii_bench.runs.records import Failure, RunRecord, decode_record, encode_record


def there_and_back(record: RunRecord) -> RunRecord:
    return decode_record(json.loads(encode_record(record)))


@given(st.text(), st.text(), st.text())
def test_a_response_comes_back_from_its_line(sample_id: str, request: str, text: str) -> None:
    record = RunRecord(sample_id, request, Completion(text, Finish.STOP, "m", Usage(1, 2)))

    assert there_and_back(record) == record


@pytest.mark.parametrize("text", ["\ud83d", "a\udc00b", "\udc00\ud83d", "\\ud83d"])
def test_half_a_surrogate_pair_survives(text: str) -> None:
    record = RunRecord("s1", "hash", Completion(text))

    assert there_and_back(record) == record


@given(st.text())
def test_a_response_is_one_line(text: str) -> None:
    line = encode_record(RunRecord("s1", "hash", Completion(text)))

    assert line.index(b"\n") == len(line) - 1


def test_a_line_is_readable_text() -> None:
    line = encode_record(RunRecord("s1", "hash", Completion("王小明", Finish.STOP)))

    assert line.decode() == '{"id": "s1", "request": "hash", "text": "王小明", "finish": "stop"}\n'


def test_several_draws_are_one_line() -> None:
    record = RunRecord("s1", "hash", Draws((Completion("[]", Finish.STOP), Completion("32"))))

    assert encode_record(record) == (
        b'{"id": "s1", "request": "hash", "draws": [{"text": "[]", "finish": "stop"},'
        b' {"text": "32", "finish": "unknown"}]}\n'
    )
    assert there_and_back(record) == record


@pytest.mark.parametrize(
    ("response", "texts"),
    [
        (Completion("32"), ["32"]),
        (Draws((Completion("32"), Completion("40"))), ["32", "40"]),
        (Failure("timeout", ""), []),
    ],
)
def test_every_completion_of_a_line_is_there_to_be_counted(
    response: Completion | Draws | Failure, texts: list[str]
) -> None:
    record = RunRecord("s1", "hash", response)

    assert [completion.text for completion in record.completions] == texts


def test_a_failed_call_comes_back_from_its_line() -> None:
    record = RunRecord("s1", "hash", Failure.of(CallError("server_error", "HTTP 503")))

    assert json.loads(encode_record(record)) == {
        "id": "s1",
        "request": "hash",
        "error": {"kind": "server_error", "detail": "HTTP 503"},
    }
    assert there_and_back(record) == record


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ({"request": "hash", "text": ""}, "record: 'id' is missing"),
        ({"id": "s1", "text": ""}, "record: 'request' is missing"),
        ({"id": "s1", "request": "hash"}, "record: 'text' is missing"),
        (
            {"id": "s1", "request": "hash", "error": "timeout"},
            "record: 'error' must be an object, not a string",
        ),
        (
            {"id": "s1", "request": "hash", "error": {"kind": "timeout"}},
            "error: 'detail' is missing",
        ),
    ],
)
def test_an_object_that_is_no_line_of_a_run(line: dict[str, object], what: str) -> None:
    with pytest.raises(RecordError) as caught:
        decode_record(line)

    assert str(caught.value) == what
