from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from datetime import date
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_bench.files import RecordError
from pii_bench.models.base import CallError, Completion, Draws, Finish, Usage
from pii_bench.models.table import Price
from pii_bench.runs.records import (
    Failure,
    RequestHashes,
    RunRecord,
    Totals,
    decode_record,
    encode_record,
    total,
)
from tests.builders import make_sample
from tests.fakes import FakeModel, fake_system

if TYPE_CHECKING:
    from pii_bench.datasets.sample import Sample
    from pii_bench.systems.base import SystemCard

SAMPLES = [make_sample("s1"), make_sample("s2")]

# USD per million: input 2, cached 0.5, output 10; a batch costs half.
PRICE: Final = Price(
    input=2.0,
    output=10.0,
    date=date(2026, 3, 1),
    source="https://prices.example",
    cached_input=0.5,
    batch_factor=0.5,
)
TOLD: Final = "2 in, 10 out, 2026-03-01, https://prices.example"

# 600 fresh tokens in, 400 cached, 100 out: 1,200 + 200 + 1,000 millionths of a dollar.
USAGE: Final = Usage(1000, 100, reasoning_tokens=30, cached_tokens=400)
ANSWER: Final = Completion("[]", usage=USAGE)


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


@dataclass
class Hashing:
    """Notes whose requests are hashed (`System`)."""

    hashed: list[str] = field(default_factory=list)

    @property
    def card(self) -> SystemCard:
        raise NotImplementedError

    def request_hash(self, sample: Sample) -> str:
        self.hashed.append(sample.id)
        return f"hash of {sample.id}"

    async def respond(self, sample: Sample) -> Completion:
        raise NotImplementedError

    async def close(self) -> None:
        raise NotImplementedError


def test_each_sample_has_the_hash_of_its_request() -> None:
    system = fake_system(FakeModel())

    hashes = RequestHashes(system, SAMPLES)

    assert dict(hashes) == {sample.id: system.request_hash(sample) for sample in SAMPLES}
    assert len(hashes) == 2


def test_a_request_is_hashed_once_and_only_when_it_is_needed() -> None:
    system = Hashing()
    hashes = RequestHashes(system, SAMPLES)

    assert list(hashes) == ["s1", "s2"]
    assert system.hashed == []
    assert [hashes["s2"], hashes["s2"]] == ["hash of s2", "hash of s2"]
    assert system.hashed == ["s2"]


def test_a_sample_that_is_not_there_has_none() -> None:
    hashes = RequestHashes(Hashing(), SAMPLES)

    assert hashes.get("s3") is None
    with pytest.raises(KeyError):
        hashes["s3"]


def record(response: Completion | Draws | Failure, name: str = "s1") -> RunRecord:
    return RunRecord(name, "request", response)


def test_of_nothing() -> None:
    assert total([], None) == Totals()
    assert total([], PRICE) == Totals(usd=0.0, price=TOLD)


def test_of_one_answer() -> None:
    assert total([record(ANSWER)], PRICE) == Totals(
        completions=1,
        uncounted=0,
        input_tokens=1000,
        output_tokens=100,
        reasoning_tokens=30,
        cached_tokens=400,
        usd=0.0024,
        price=TOLD,
    )


def test_without_a_price_the_cost_is_unknown_and_not_nothing() -> None:
    totals = total([record(ANSWER)], None)

    assert (totals.input_tokens, totals.usd, totals.price) == (1000, None, None)


def test_a_batch_costs_its_part() -> None:
    batched = record(replace(ANSWER, batched=True), "s2")

    assert total([batched], PRICE).usd == 0.0012
    assert total([record(ANSWER), batched], PRICE).usd == 0.0036


def test_a_failure_is_in_no_sum() -> None:
    assert total([record(Failure("timeout", ""))], PRICE) == Totals(usd=0.0, price=TOLD)


def test_an_answer_whose_tokens_nobody_told_is_counted_apart() -> None:
    totals = total([record(ANSWER), record(Completion("[]"), "s2")], PRICE)

    assert (totals.completions, totals.uncounted, totals.usd) == (2, 1, 0.0024)


def test_every_draw_counts() -> None:
    totals = total([record(Draws((ANSWER, ANSWER, Completion("[]"))))], PRICE)

    assert (totals.completions, totals.uncounted) == (3, 1)
    assert (totals.output_tokens, totals.usd) == (200, 0.0048)


@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**5)), max_size=20))
def test_the_order_of_the_answers_does_not_matter(counts: list[tuple[int, int]]) -> None:
    records = [
        record(Completion("[]", usage=Usage(into, out)), f"s{number}")
        for number, (into, out) in enumerate(counts)
    ]

    assert total(records, PRICE) == total(reversed(records), PRICE)
