from __future__ import annotations

import json
import platform
import re
from dataclasses import replace
from datetime import date
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pii_bench
from pii_bench.errors import InputFileError
from pii_bench.files import RecordError, write_json
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
)
from pii_bench.systems.base import SystemCard
from pii_bench.systems.predictions import Prediction
from pii_bench.systems.prompted import PromptedSystem
from pii_bench.tasks import Status, Task
from tests.builders import make_sample
from tests.fakes import FakeModel, fake_system

if TYPE_CHECKING:
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


def test_a_request_is_hashed_once_and_only_when_it_is_needed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    system = fake_system(FakeModel())
    expected = {sample.id: system.request_hash(sample) for sample in SAMPLES}
    hashed = []

    def request_hash(_: PromptedSystem, sample: Sample) -> str:
        hashed.append(sample.id)
        return expected[sample.id]

    monkeypatch.setattr(PromptedSystem, "request_hash", request_hash)
    hashes = RequestHashes(system, SAMPLES)

    assert (list(hashes), len(hashes), hashes.get("s3")) == (["s1", "s2"], 2, None)
    assert hashed == []
    assert [hashes["s2"], hashes["s2"]] == [expected["s2"]] * 2
    assert hashed == ["s2"]


def record(response: Response | Failure) -> RunRecord:
    return RunRecord("s1", "request", response)


def test_totals_of_an_answer_and_of_none() -> None:
    assert total([], None) == Totals()
    assert total([], PRICE) == Totals(usd=0.0, price=PRICE_TEXT)
    with_price = Totals(
        completions=1,
        uncounted=0,
        input_tokens=1000,
        output_tokens=100,
        reasoning_tokens=30,
        cached_tokens=400,
        usd=0.0024,
        price=PRICE_TEXT,
    )
    assert total([record(ANSWER)], PRICE) == with_price
    # Without a price the cost is unknown, and not zero.
    assert total([record(ANSWER)], None) == replace(with_price, usd=None, price=None)


@pytest.mark.parametrize(
    ("responses", "completions", "uncounted", "usd"),
    [
        ([replace(ANSWER, batched=True)], 1, 0, 0.0012),
        ([ANSWER, replace(ANSWER, batched=True)], 2, 0, 0.0036),
        # Failures are not counted; an answer without token counts is counted apart.
        ([Failure("timeout", ""), Prediction(Status.OK, related=())], 0, 0, 0.0),
        ([ANSWER, Completion("[]")], 2, 1, 0.0024),
        ([Draws((ANSWER, ANSWER, Completion("[]")))], 3, 1, 0.0048),
    ],
)
def test_totals_sum_the_completions_of_all_records(
    responses: list[Response | Failure], completions: int, uncounted: int, usd: float
) -> None:
    totals = total(map(record, responses), PRICE)

    assert (totals.completions, totals.uncounted, totals.usd) == (completions, uncounted, usd)


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

    assert dict(part.split(":", 1) for part in str(signature).split("|")) == {
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


@pytest.mark.parametrize(
    "card",
    [
        {},
        {"names_subjects": False},
        {"unmasked_text_to": "openai"},
        {"output": "schema"},
        {"taxonomy": "spacy"},
    ],
)
def test_a_manifest_is_read_back_from_its_file(tmp_path: Path, card: dict[str, Any]) -> None:
    path = tmp_path / "openai--gpt-4o" / "naive" / "demo.run.json"
    manifest = replace(MANIFEST, system=replace(MANIFEST.system, **card))
    write_json(path, manifest)

    assert read_manifest(path) == manifest
    assert manifest.version == pii_bench.__version__


@pytest.mark.parametrize(
    ("part", "change", "message"),
    [
        (None, {"system": None}, "record: 'system' must be an object, not null"),
        (None, {"system": {"model": "m"}}, "system: 'prompt' is missing"),
        (None, {"dataset": {"name": 1}}, "dataset: 'name' must be a string, not a whole number"),
        (None, {"version": 1}, "record: 'version' must be a string, not a whole number"),
        ("system", {"output": "xml"}, "system: 'output' is 'xml' (allowed: text, schema)"),
        (
            "system",
            {"taxonomy": "spcy"},
            "system: unknown taxonomy 'spcy'; did you mean 'spacy'? (allowed: ",
        ),
        ("system", {"task": "guessing"}, "'guessing' is not a valid Task"),
        ("system", {"names_subjects": ...}, "system: 'names_subjects' is missing"),
        ("system", {"unmasked_text_to": ...}, "system: 'unmasked_text_to' is missing"),
        ("system", {"output": ...}, "system: 'output' is missing"),
    ],
)
def test_an_invalid_manifest_is_reported_with_its_path(
    tmp_path: Path, part: str | None, change: dict[str, Any], message: str
) -> None:
    path = tmp_path / "demo.run.json"
    write_json(path, MANIFEST)
    content = json.loads(path.read_text())
    changed = content[part] if part else content
    for key, value in change.items():
        # `...` removes the key.
        if value is ...:
            del changed[key]
        else:
            changed[key] = value
    path.write_text(json.dumps(content))

    with pytest.raises(InputFileError) as caught:
        read_manifest(path)

    assert str(caught.value).startswith(f"{path}: no manifest of a run: {message}")


@pytest.mark.parametrize("content", ["", "[]", "{", "\ufeff{}", None])
def test_a_file_without_a_json_object_is_no_manifest(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "demo.run.json"
    if content is not None:
        path.write_text(content, encoding="utf-8")

    with pytest.raises(InputFileError, match=r"demo\.run\.json: no manifest of a run: "):
        read_manifest(path)
