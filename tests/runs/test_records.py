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
PRICE_TEXT: Final = "2 in, 10 out, 0.5 in from a cache, 2026-03-01, https://prices.example"

# 600 fresh tokens in, 400 cached, 100 out: 1,200 + 200 + 1,000 millionths of a dollar.
USAGE: Final = Usage(1000, 100, reasoning_tokens=30, cached_tokens=400)
ANSWER: Final = Completion("[]", usage=USAGE)


def decode_line(line: bytes) -> RunRecord:
    return decode_record(json.loads(line))


@given(st.text(), st.text(), st.text())
def test_a_response_is_one_line_that_decodes_to_itself(
    sample_id: str, request: str, text: str
) -> None:
    record = RunRecord(sample_id, request, Completion(text, Finish.STOP, "m", Usage(1, 2)))
    line = encode_record(record)

    assert decode_line(line) == record
    assert line.index(b"\n") == len(line) - 1


@pytest.mark.parametrize("text", ["\ud83d", "a\udc00b", "\udc00\ud83d", "\\ud83d"])
def test_half_a_surrogate_pair_survives(text: str) -> None:
    record = RunRecord("s1", "hash", Completion(text))

    assert decode_line(encode_record(record)) == record


@pytest.mark.parametrize(
    ("response", "fields"),
    [
        (Completion("王小明", Finish.STOP), '"text": "王小明", "finish": "stop"'),
        (
            Draws((Completion("[]", Finish.STOP), Completion("32"))),
            '"draws": [{"text": "[]", "finish": "stop"}, {"text": "32", "finish": "unknown"}]',
        ),
        (
            Prediction(Status.OK, subjects=((("Ann Lee", "PER"), ("32", "DEM")),)),
            (
                '"subjects": [[{"text": "Ann Lee", "type": "PER"}, '
                '{"text": "32", "type": "DEM"}]], "status": "ok"'
            ),
        ),
        (
            Failure.of(CallError("server_error", "HTTP 503")),
            '"error": {"kind": "server_error", "detail": "HTTP 503"}',
        ),
    ],
    ids=["completion", "draws", "prediction", "failure"],
)
def test_a_line_holds_the_response_as_readable_text(
    response: Response | Failure, fields: str
) -> None:
    record = RunRecord("s1", "hash", response)
    line = encode_record(record)

    assert line.decode() == f'{{"id": "s1", "request": "hash", {fields}}}\n'
    assert decode_line(line) == record


@pytest.mark.parametrize(
    ("response", "texts"),
    [
        (Completion("32"), ["32"]),
        (Draws((Completion("32"), Completion("40"))), ["32", "40"]),
        (Failure("timeout", ""), []),
        (Prediction(Status.OK, related=("32",)), []),
    ],
)
def test_a_record_lists_its_completions(response: Response | Failure, texts: list[str]) -> None:
    record = RunRecord("s1", "hash", response)

    assert [completion.text for completion in record.completions] == texts


@pytest.mark.parametrize(
    ("line", "message"),
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
def test_an_invalid_record_is_refused(line: dict[str, object], message: str) -> None:
    with pytest.raises(RecordError) as caught:
        decode_record(line)

    assert str(caught.value) == message


@dataclass
class HashingSystem:
    """A `System` that records the samples whose requests it hashes."""

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
    system = HashingSystem()
    hashes = RequestHashes(system, SAMPLES)

    assert list(hashes) == ["s1", "s2"]
    assert system.hashed == []
    assert [hashes["s2"], hashes["s2"]] == ["hash of s2", "hash of s2"]
    assert system.hashed == ["s2"]


def test_an_unknown_sample_has_no_hash() -> None:
    hashes = RequestHashes(HashingSystem(), SAMPLES)

    assert hashes.get("s3") is None
    with pytest.raises(KeyError):
        hashes["s3"]


def record(response: Completion | Draws | Failure, name: str = "s1") -> RunRecord:
    return RunRecord(name, "request", response)


def test_totals_of_no_answers_are_zero() -> None:
    assert total([], None) == Totals()
    assert total([], PRICE) == Totals(usd=0.0, price=PRICE_TEXT)


def test_totals_of_one_answer() -> None:
    assert total([record(ANSWER)], PRICE) == Totals(
        completions=1,
        uncounted=0,
        input_tokens=1000,
        output_tokens=100,
        reasoning_tokens=30,
        cached_tokens=400,
        usd=0.0024,
        price=PRICE_TEXT,
    )


def test_without_a_price_the_cost_is_unknown_and_not_zero() -> None:
    totals = total([record(ANSWER)], None)

    assert (totals.input_tokens, totals.usd, totals.price) == (1000, None, None)


@pytest.mark.parametrize(
    ("responses", "completions", "uncounted", "usd"),
    [
        ([replace(ANSWER, batched=True)], 1, 0, 0.0012),
        ([ANSWER, replace(ANSWER, batched=True)], 2, 0, 0.0036),
        # Failures are not counted; an answer without token counts is counted apart.
        ([Failure("timeout", "")], 0, 0, 0.0),
        ([ANSWER, Completion("[]")], 2, 1, 0.0024),
        ([Draws((ANSWER, ANSWER, Completion("[]")))], 3, 1, 0.0048),
    ],
)
def test_totals_sum_the_completions_of_all_records(
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


def test_a_signature_names_all_that_a_score_depends_on() -> None:
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


def test_the_signature_of_a_predictions_file_has_no_model_and_no_parser() -> None:
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


def test_a_manifest_is_read_back_from_its_file(tmp_path: Path) -> None:
    path = tmp_path / "openai--gpt-4o" / "naive" / "demo.run.json"
    write_manifest(path, MANIFEST)

    assert read_manifest(path) == MANIFEST
    assert MANIFEST.version == pii_bench.__version__


def write_changed(path: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    """Write the manifest with a change to its JSON object."""
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
def test_a_card_with_another_value_is_read_back(tmp_path: Path, card: dict[str, Any]) -> None:
    manifest = replace(MANIFEST, system=replace(MANIFEST.system, **card))
    write_manifest(tmp_path / "demo.run.json", manifest)

    assert read_manifest(tmp_path / "demo.run.json") == manifest


@pytest.mark.parametrize("key", ["names_subjects", "unmasked_text_to", "output"])
def test_a_manifest_has_every_field_of_its_card(tmp_path: Path, key: str) -> None:
    path = write_changed(tmp_path / "demo.run.json", lambda record: record["system"].pop(key))

    with pytest.raises(InputFileError, match=f"system: '{key}' is missing"):
        read_manifest(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"output": "xml"}, r"system: 'output' is 'xml' \(allowed: text, schema"),
        ({"taxonomy": "spcy"}, "unknown taxonomy 'spcy'; did you mean 'spacy'"),
        ({"task": "guessing"}, "'guessing' is not a valid Task"),
    ],
)
def test_an_unknown_name_in_a_card_is_refused(
    tmp_path: Path, change: dict[str, str], message: str
) -> None:
    path = write_changed(tmp_path / "demo.run.json", lambda record: record["system"].update(change))

    with pytest.raises(InputFileError, match=message):
        read_manifest(path)


def test_a_dataset_reference_holds_its_hash_and_size() -> None:
    demo = load_dataset("demo")

    assert DatasetRef.of(demo) == DatasetRef("demo", "demo", demo.sha256, 12)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"system": None}, "record: 'system' must be an object, not null"),
        ({"system": {"model": "m"}}, "system: 'prompt' is missing"),
        ({"dataset": {"name": 1}}, "dataset: 'name' must be a string, not a whole number"),
        ({"version": 1}, "record: 'version' must be a string, not a whole number"),
    ],
)
def test_an_invalid_manifest_is_reported_with_its_path(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    path = write_changed(tmp_path / "demo.run.json", lambda record: record.update(change))

    with pytest.raises(InputFileError) as caught:
        read_manifest(path)

    assert str(caught.value) == f"{path}: no manifest of a run: {message}"


@pytest.mark.parametrize("content", ["", "[]", "{", "\ufeff{}"])
def test_a_file_without_a_json_object_is_no_manifest(tmp_path: Path, content: str) -> None:
    (tmp_path / "demo.run.json").write_text(content, encoding="utf-8")

    with pytest.raises(InputFileError, match=r"demo\.run\.json: no manifest of a run: "):
        read_manifest(tmp_path / "demo.run.json")


def test_a_missing_manifest_is_reported(tmp_path: Path) -> None:
    with pytest.raises(InputFileError, match="No such file"):
        read_manifest(tmp_path / "demo.run.json")
