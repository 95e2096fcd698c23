from __future__ import annotations

import json
import platform
import re
from dataclasses import dataclass, field, replace
from datetime import date
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pii_bench
from pii_bench.datasets.catalog import load_dataset
from pii_bench.errors import InputFileError
from pii_bench.files import RecordError
from pii_bench.models.base import CallError, Completion, Draws, Finish, Usage
from pii_bench.models.catalog import Price
from pii_bench.prompting.parsing.answers import PARSER
from pii_bench.runs.records import (
    DatasetRef,
    Failure,
    Manifest,
    RequestHashes,
    RunRecord,
    Signature,
    Totals,
    decode_record,
    encode_record,
    read_manifest,
    total,
    write_manifest,
)
from pii_bench.systems.base import SystemCard
from pii_bench.systems.predictions import Prediction
from pii_bench.tasks import Status, Task
from tests.builders import make_sample
from tests.fakes import FakeModel, fake_system

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pii_bench.datasets.sample import Sample
    from pii_bench.systems.base import Response


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
        (Prediction(Status.OK, related=("32",)), []),
    ],
)
def test_every_completion_of_a_line_is_there_to_be_counted(
    response: Response | Failure, texts: list[str]
) -> None:
    record = RunRecord("s1", "hash", response)

    assert [completion.text for completion in record.completions] == texts


def test_a_prediction_is_a_line_as_in_a_predictions_file() -> None:
    found = ((("Ann Lee", "PER"), ("32", "DEM")),)
    record = RunRecord("s1", "hash", Prediction(Status.OK, subjects=found))

    assert encode_record(record) == (
        b'{"id": "s1", "request": "hash", "subjects": [[{"text": "Ann Lee", "type": "PER"},'
        b' {"text": "32", "type": "DEM"}]], "status": "ok"}\n'
    )
    assert there_and_back(record) == record


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
        (
            {"id": "s1", "request": "hash"},
            "record: has neither 'subjects' nor 'related' nor 'rewritten' (status 'ok')",
        ),
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


@pytest.mark.parametrize(
    ("responses", "completions", "uncounted", "usd"),
    [
        ([replace(ANSWER, batched=True)], 1, 0, 0.0012),
        ([ANSWER, replace(ANSWER, batched=True)], 2, 0, 0.0036),
        # A failure is in no sum, and an answer whose tokens nobody told is counted apart.
        ([Failure("timeout", "")], 0, 0, 0.0),
        ([ANSWER, Completion("[]")], 2, 1, 0.0024),
        ([Draws((ANSWER, ANSWER, Completion("[]")))], 3, 1, 0.0048),
    ],
)
def test_what_is_summed(
    responses: list[Completion | Draws | Failure], completions: int, uncounted: int, usd: float
) -> None:
    totals = total(map(record, responses), PRICE)

    assert (totals.completions, totals.uncounted, totals.usd) == (completions, uncounted, usd)


@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**5)), max_size=20))
def test_the_order_of_the_answers_does_not_matter(counts: list[tuple[int, int]]) -> None:
    records = [
        record(Completion("[]", usage=Usage(into, out)), f"s{number}")
        for number, (into, out) in enumerate(counts)
    ]

    assert total(records, PRICE) == total(reversed(records), PRICE)


def parts(signature: Signature) -> dict[str, str]:
    return dict(part.split(":", 1) for part in str(signature).split("|"))


def test_a_run_tells_all_that_its_score_depends_on() -> None:
    signature = Signature(
        dataset="demo",
        dataset_sha256="0123456789abcdef" * 4,
        task=Task.MASKING,
        strategy="self-cot",
        prompts={"detection": "d" * 64, "self-cot": "e" * 64},
        model="openai/gpt-4o",
        returned=["gpt-4o-2024-11-20", "gpt-4o-2024-08-06"],
        settings={"temperature": 0.0, "endpoint": "https://api.openai.com/v1", "max_tokens": 2048},
    )

    assert parts(signature) == {
        "data": "demo@0123456789ab",
        "task": "masking",
        "strategy": "self-cot",
        "prompt": "detection@dddddddddddd+self-cot@eeeeeeeeeeee",
        "model": "openai/gpt-4o",
        "returned": "gpt-4o-2024-08-06+gpt-4o-2024-11-20",
        "endpoint": "https://api.openai.com/v1",
        "max_tokens": "2048",
        "temperature": "0.0",
        "norm": "nfc-ws-1",
        "match": "lsa-lex-1",
        "rougeL": "rouge-uni-1",
        "parser": PARSER,
        "pii_bench": pii_bench.__version__,
        "scipy": version("scipy"),
        "rapidfuzz": version("rapidfuzz"),
        "python": platform.python_version(),
    }


def test_predictions_made_elsewhere_tell_of_no_model_and_no_parser() -> None:
    signature = Signature("demo", "a" * 64, Task.DETECTION)

    assert re.fullmatch(
        r"data:demo@a{12}\|task:detection\|norm:.+\|match:.+\|rougeL:.+\|pii_bench:.+",
        str(signature),
    )


MANIFEST = Manifest(
    SystemCard(
        model="openai/gpt-4o",
        prompt="naive",
        prompt_sha256="p" * 64,
        task=Task.QUERY_RELATED,
        oracle=False,
        settings={"endpoint": "https://api.openai.com/v1", "temperature": 0.0, "max_tokens": 2048},
    ),
    DatasetRef("demo", "demo", "d" * 64, 12),
)


def test_it_comes_back_from_its_file(tmp_path: Path) -> None:
    path = tmp_path / "openai--gpt-4o" / "naive" / "demo.run.json"
    write_manifest(path, MANIFEST)

    assert read_manifest(path) == MANIFEST
    assert MANIFEST.version == pii_bench.__version__


def changed(path: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    """A manifest in which something was changed by hand."""
    write_manifest(path, MANIFEST)
    record = json.loads(path.read_text())
    change(record)
    path.write_text(json.dumps(record))
    return path


@pytest.mark.parametrize(
    "card",
    [
        {"names_subjects": False},
        {"unmasked_text_to": "openai"},
        {"output": "schema"},
        {"taxonomy": "spacy"},
    ],
)
def test_what_a_card_says_otherwise_comes_back(tmp_path: Path, card: dict[str, Any]) -> None:
    told = replace(MANIFEST, system=replace(MANIFEST.system, **card))
    write_manifest(tmp_path / "demo.run.json", told)

    assert read_manifest(tmp_path / "demo.run.json") == told


@pytest.mark.parametrize("key", ["names_subjects", "unmasked_text_to", "output", "taxonomy"])
def test_a_manifest_of_before_lacks_what_was_not_yet(tmp_path: Path, key: str) -> None:
    path = changed(tmp_path / "demo.run.json", lambda record: record["system"].pop(key))

    assert read_manifest(path) == MANIFEST


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"output": "xml"}, r"system: 'output' is 'xml' \(allowed: text, schema"),
        ({"taxonomy": "spcy"}, "unknown taxonomy 'spcy'; did you mean 'spacy'"),
        ({"task": "guessing"}, "'guessing' is not a valid Task"),
    ],
)
def test_a_name_in_a_card_that_is_none_is_told(
    tmp_path: Path, change: dict[str, str], what: str
) -> None:
    path = changed(tmp_path / "demo.run.json", lambda record: record["system"].update(change))

    with pytest.raises(InputFileError, match=what):
        read_manifest(path)


def test_it_refers_to_a_dataset() -> None:
    demo = load_dataset("demo")

    assert DatasetRef.of(demo) == DatasetRef("demo", "demo", demo.sha256, 12)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"system": None}, "record: 'system' must be an object, not null"),
        ({"system": {"model": "m"}}, "system: 'prompt' is missing"),
        ({"dataset": {"name": 1}}, "dataset: 'name' must be a string, not a whole number"),
        ({"version": 1}, "record: 'version' must be a string, not a whole number"),
    ],
)
def test_a_broken_one_is_named(tmp_path: Path, change: dict[str, Any], what: str) -> None:
    path = changed(tmp_path / "demo.run.json", lambda record: record.update(change))

    with pytest.raises(InputFileError) as caught:
        read_manifest(path)

    assert str(caught.value) == f"{path}: no manifest of a run: {what}"


@pytest.mark.parametrize("content", ["", "[]", "{", "\ufeff{}"])
def test_a_file_that_is_none_is_named(tmp_path: Path, content: str) -> None:
    (tmp_path / "demo.run.json").write_text(content, encoding="utf-8")

    with pytest.raises(InputFileError, match=r"demo\.run\.json: no manifest of a run: "):
        read_manifest(tmp_path / "demo.run.json")


def test_a_manifest_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputFileError, match="No such file"):
        read_manifest(tmp_path / "demo.run.json")
