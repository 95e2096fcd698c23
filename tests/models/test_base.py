from __future__ import annotations

import asyncio
import json
from dataclasses import astuple
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_bench.errors import InputFileError
from pii_bench.files import RecordError
from pii_bench.models.base import (
    MOST_TOKENS,
    CallError,
    Completion,
    Draws,
    Finish,
    Message,
    ModelResponse,
    ReplayModel,
    Request,
    Sampling,
    Usage,
    decode_response,
    encode_response,
    is_count,
)
from pii_bench.runs.records import Failure, RunRecord, encode_record
from tests.builders import write_lines

if TYPE_CHECKING:
    from pathlib import Path

anything: Any = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3)


def test_counts_are_integers_in_a_range() -> None:
    values = [0, 1, 2**53, True, False, -1, 2**53 + 1, 10**400, 7.0, "7", None, [7]]

    assert [value for value in values if is_count(value)] == [0, 1, 2**53]


@pytest.mark.parametrize(
    ("text", "reasoning", "usage", "kept"),
    [
        ("32", None, Usage(11, 7, 6, 11), Usage(11, 7, reasoning_tokens=6, cached_tokens=11)),
        ("32", None, Usage(MOST_TOKENS, MOST_TOKENS), Usage(MOST_TOKENS, MOST_TOKENS)),
        # Only an empty answer may have no tokens; a request always has some.
        ("", None, Usage(11, 0), Usage(11, 0)),
        ("32", None, Usage(11, 0), None),
        ("", "A place.", Usage(11, 0), None),
        ("32", None, Usage(0, 7), None),
        ("", None, Usage(0, 0), None),
        # A boolean is no count.
        ("32", None, Usage(True, 7), None),
        ("32", None, Usage(11, False), None),
        ("32", None, Usage(11, 7, cached_tokens=True), Usage(11, 7)),
        ("32", None, Usage(11, 7, cached_tokens=12), Usage(11, 7)),
        ("32", None, Usage(11, 7, reasoning_tokens=-1), Usage(11, 7)),
    ],
)
def test_impossible_usage_is_unknown_and_impossible_details_are_0(
    text: str, reasoning: str | None, usage: Usage, kept: Usage | None
) -> None:
    assert Completion(text, reasoning=reasoning, usage=usage).usage == kept


@given(st.text(), st.builds(Usage, anything, anything, anything, anything))
def test_usage_is_valid_or_none(text: str, usage: Usage) -> None:
    kept = Completion(text, usage=usage).usage
    if kept is not None:
        assert all(map(is_count, astuple(kept)))
        assert 0 <= kept.cached_tokens <= kept.input_tokens
        assert kept.output_tokens > 0 or not text


counts = st.integers(min_value=0, max_value=10**9)
completions = st.builds(
    Completion,
    text=st.text(),
    finish=st.sampled_from(Finish),
    model=st.none() | st.text(max_size=8),
    usage=st.none() | st.builds(Usage, counts, counts, counts, counts),
    reasoning=st.none() | st.text(),
    batched=st.booleans(),
)


draws = st.lists(completions, min_size=1, max_size=3).map(lambda items: Draws(tuple(items)))


@given(completions | draws)
def test_a_response_survives_json(response: ModelResponse) -> None:
    assert decode_response(json.loads(json.dumps(encode_response(response)))) == response


def test_the_keys_of_a_response() -> None:
    completion = Completion("32", Finish.LENGTH, "gpt-4o-2024-08-06", Usage(11, 7))

    assert encode_response(completion) == {
        "text": "32",
        "finish": "length",
        "model": "gpt-4o-2024-08-06",
        "usage": {"input_tokens": 11, "output_tokens": 7},
    }
    assert encode_response(Draws((Completion("32", Finish.STOP), Completion("40")))) == {
        "draws": [{"text": "32", "finish": "stop"}, {"text": "40", "finish": "unknown"}]
    }
    # Only the text is required.
    assert decode_response({"text": "32"}) == Completion("32", Finish.UNKNOWN)


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({}, "record: 'text' is missing"),
        ({"text": None}, "record: 'text' must be a string, not null"),
        (
            {"text": "", "finish": "done"},
            "record: 'finish' is 'done' (allowed: stop, length, refusal, filter, unknown)",
        ),
        ({"text": "", "model": 4}, "record: 'model' must be a string, not a whole number"),
        ({"text": "", "usage": 18}, "record: 'usage' must be an object, not a whole number"),
        ({"text": "", "usage": {"input_tokens": 11}}, "usage: 'output_tokens' is missing"),
        ({"draws": []}, "'draws' must not be empty"),
        ({"draws": "32"}, "record: 'draws' must be a list, not a string"),
        ({"draws": ["32"]}, "record: draws[0] must be an object, not a string"),
        ({"draws": [{"text": "32"}, {}]}, "draws[1]: 'text' is missing"),
    ],
)
def test_a_record_that_is_not_valid(record: dict[str, object], message: str) -> None:
    with pytest.raises(RecordError) as caught:
        decode_response(record)

    assert str(caught.value) == message


def replay(folder: Path, *records: object) -> ReplayModel:
    return ReplayModel(write_lines(folder / "answers.jsonl", records))


def ask(model: ReplayModel, sample_id: str, prompt: str = "naive", draw: int = 0) -> str:
    request = Request(sample_id, prompt, (Message("user", "Why?"),), Sampling(), draw=draw)
    return asyncio.run(model.complete(request)).text


REPLAYED = [
    {"id": "s1", "text": "any"},
    {"id": "s1", "prompt": "detection", "text": "detected"},
    {"id": "s2", "prompt": "detection", "text": "second"},
    {"id": "s3", "draws": [{"text": "one"}, {"text": "two"}]},
    {"id": "s4", "draws": [{"text": "single"}]},
]


@pytest.mark.parametrize(
    ("sample_id", "prompt", "draw", "answer"),
    [
        # An answer to a prompt precedes one to any prompt.
        ("s1", "naive", 0, "any"),
        ("s1", "self-cot", 0, "any"),
        ("s1", "detection", 0, "detected"),
        ("s2", "detection", 0, "second"),
        ("s2", "naive", 0, None),
        ("s9", "detection", 0, None),
        ("s3", "naive", 0, "one"),
        ("s3", "naive", 1, "two"),
        # A single answer is only the first draw.
        ("s1", "naive", 1, None),
        ("s2", "detection", 1, None),
        ("s4", "naive", 1, None),
    ],
)
def test_each_sample_prompt_and_draw_has_its_answer_or_is_a_failed_call(
    tmp_path: Path, sample_id: str, prompt: str, draw: int, answer: str | None
) -> None:
    model = replay(tmp_path, *REPLAYED)

    if answer is not None:
        assert ask(model, sample_id, prompt, draw) == answer
    else:
        with pytest.raises(CallError, match=r"^no_stored_response$"):
            ask(model, sample_id, prompt, draw)


def test_the_file_of_a_run_is_a_replay_file(tmp_path: Path) -> None:
    path = tmp_path / "demo.jsonl"
    vote = Draws((Completion("two", Finish.STOP), Completion("three", Finish.STOP)))
    path.write_bytes(
        encode_record(RunRecord("s1", "hash", Completion("one", Finish.STOP, "m")))
        + encode_record(RunRecord("s2", "hash", Failure("timeout", "")))
        + encode_record(RunRecord("s3", "hash", vote))
    )

    model = ReplayModel(path)

    assert (ask(model, "s1"), ask(model, "s3", draw=1)) == ("one", "three")
    with pytest.raises(CallError):
        ask(model, "s2")


def test_the_name_is_that_of_the_file_and_the_identity_depends_on_the_answers(
    tmp_path: Path,
) -> None:
    line = {"id": "s1", "text": "one", "finish": "stop"}
    model = replay(tmp_path, line)
    identity = model.identity

    assert model.name == "replay/answers"
    assert identity["answers"].startswith("sha256:")
    assert replay(tmp_path, line | {"note": "ignored"}).identity == identity
    for change in (
        {"id": "s2"},
        {"text": "two"},
        {"finish": "length"},
        {"prompt": "naive"},
        {"draws": [{"text": "one", "finish": "stop"}]},
    ):
        assert replay(tmp_path, line | change).identity != identity


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"text": "Ann"}, "record: 'id' is missing"),
        ({"id": "s2"}, "record: 'text' is missing"),
        ({"id": "s1", "text": "Ann"}, "a second answer for id 's1'"),
        (
            {"id": "s2", "text": "Ann", "prompt": None},
            "record: 'prompt' must be a string, not null",
        ),
    ],
)
def test_an_error_names_the_line_without_its_text(
    tmp_path: Path, record: object, message: str
) -> None:
    with pytest.raises(InputFileError) as caught:
        replay(tmp_path, {"id": "s1", "text": "Ann"}, record)

    assert str(caught.value) == f"{tmp_path / 'answers.jsonl'}:2: {message}"
