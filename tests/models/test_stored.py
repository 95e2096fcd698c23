from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_bench.jsonl import RecordError
from pii_bench.models.base import Completion, Draws, Finish, Response, Usage
from pii_bench.models.stored import (
    decode_completion,
    decode_response,
    encode_completion,
    encode_response,
)

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


@given(completions)
def test_a_completion_comes_back_from_json(completion: Completion) -> None:
    assert decode_completion(json.loads(json.dumps(encode_completion(completion)))) == completion


def test_what_is_not_known_is_left_out() -> None:
    assert encode_completion(Completion("32", Finish.STOP)) == {"text": "32", "finish": "stop"}


def test_all_that_is_known_is_kept() -> None:
    completion = Completion("32", Finish.LENGTH, "gpt-4o-2024-08-06", Usage(11, 7))

    assert encode_completion(completion) == {
        "text": "32",
        "finish": "length",
        "model": "gpt-4o-2024-08-06",
        "usage": {"input_tokens": 11, "output_tokens": 7},
    }


def test_only_the_text_is_required() -> None:
    assert decode_completion({"text": "32"}) == Completion("32", Finish.UNKNOWN)


@pytest.mark.parametrize(
    ("record", "what"),
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
    ],
)
def test_a_record_that_is_no_completion(record: dict[str, object], what: str) -> None:
    with pytest.raises(RecordError) as caught:
        decode_completion(record)

    assert str(caught.value) == what


draws = st.lists(completions, min_size=1, max_size=3).map(lambda each: Draws(tuple(each)))


@given(completions | draws)
def test_a_response_comes_back_from_json(response: Response) -> None:
    assert decode_response(json.loads(json.dumps(encode_response(response)))) == response


def test_one_completion_is_stored_without_draws() -> None:
    completion = Completion("32", Finish.STOP)

    assert encode_response(completion) == encode_completion(completion)
    assert encode_response(Draws((completion, Completion("40")))) == {
        "draws": [{"text": "32", "finish": "stop"}, {"text": "40", "finish": "unknown"}]
    }


@pytest.mark.parametrize(
    ("record", "what"),
    [
        ({"draws": []}, "'draws' must not be empty"),
        ({"draws": "32"}, "record: 'draws' must be a list, not a string"),
        ({"draws": ["32"]}, "record: draws[0] must be an object, not a string"),
        ({"draws": [{"text": "32"}, {}]}, "draws[1]: 'text' is missing"),
        ({}, "record: 'text' is missing"),
    ],
)
def test_a_record_that_is_no_response(record: dict[str, object], what: str) -> None:
    with pytest.raises(RecordError) as caught:
        decode_response(record)

    assert str(caught.value) == what
