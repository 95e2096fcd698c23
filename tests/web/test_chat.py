"""Masking of chats and unmasking of answers and streams."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_bench.errors import PiiBenchError
from pii_bench.masking import unmask
from pii_bench.runs.mask_text import Answers
from pii_bench.web.chat import (
    ChunkUnmasker,
    StreamUnmasker,
    mask_chat,
    read_chat,
    unmask_answer,
)

MAPPING = {"<Full Name>": ("Ann Lee",), "<Date 1>": ("3 May",), "<Note>": ('said "no"\n',)}


def user(content: object) -> dict[str, Any]:
    return {"role": "user", "content": content}


def call(arguments: str = "{}") -> dict[str, Any]:
    return {"id": "1", "type": "function", "function": {"name": "f", "arguments": arguments}}


def test_every_text_of_a_chat_is_masked_for_the_last_user_message() -> None:
    request = {
        "model": "m",
        "messages": [
            {"role": "system", "content": "You help Ann Lee of Leeds."},
            user([{"type": "text", "text": "I am Ann Lee."}, {"type": "text", "text": "ann lee!"}]),
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [call('{"who": "Ann Lee"}')],
            },
            {"role": "tool", "tool_call_id": "1", "content": "Ann Lee: Leeds"},
            user("Where does Ann Lee live?"),
        ],
    }

    chat = read_chat(request)
    answers = Answers((("Ann Lee", "PER"), ("Leeds", "LOC")), needed=("Leeds",))
    body, mapping = mask_chat(chat, answers)

    assert chat.query == "Where does Ann Lee live?"
    assert "ann lee" not in json.dumps(body).lower()
    tags = [tag for tag, texts in mapping.items() if texts[0] == "Ann Lee"]
    assert len(tags) == 1
    assert body["messages"][0]["content"] == f"You help {tags[0]} of Leeds."
    assert body["messages"][3]["content"] == f"{tags[0]}: Leeds"
    arguments = body["messages"][2]["tool_calls"][0]["function"]["arguments"]
    assert json.loads(arguments) == {"who": tags[0]}
    assert request["messages"][0] == {"role": "system", "content": "You help Ann Lee of Leeds."}


def test_a_value_split_over_two_messages_is_masked_in_both() -> None:
    chat = read_chat({"messages": [user("I am Ann"), user("Lee. Who?")]})

    body, _ = mask_chat(chat, Answers((("Ann Lee", "PER"),), needed=()))

    assert [each["content"] for each in body["messages"]] == [
        "I am <Full Name>",
        "<Full Name>. Who?",
    ]


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        (r'{"name": "Jos\u00e9 N\u00fa\u00f1ez"}', '{"name": "<Full Name>"}'),
        (
            r'{"a": "x\tLeeds\nJosé Núñez", "b\n": 1}',
            r'{"a": "x\t<Location>\n<Full Name>", "b\n": 1}',
        ),
        (r'["Jos\u00e9 said \"Leeds\""]', r'["José said \"<Location>\""]'),
        ('{"Leeds": [2079460018, 1.50, null]}', '{"<Location>": ["<Identifier>", 1.50, null]}'),
        (r'"Jos\u00e9 N\u00fa\u00f1ez"', '"<Full Name>"'),
        # JSON in JSON.
        (r'{"text": "{\"n\": \"x\\nLeeds\"}"}', r'{"text": "{\"n\": \"x\\n<Location>\"}"}'),
        # Not JSON.
        (r'{"name": "José Núñez", "x\n', r'{"name": "<Full Name>", "x\n'),
        ("2079460018", "<Identifier>"),
    ],
)
def test_json_is_masked_without_its_escapes_and_stays_json(text: str, masked: str) -> None:
    messages = [
        user("Where is José Núñez?"),
        {"role": "assistant", "tool_calls": [call(text)]},
        {"role": "tool", "tool_call_id": "1", "content": text},
    ]
    entities = (("José Núñez", "PER"), ("Leeds", "LOC"), ("2079460018", "CODE"))

    body, _ = mask_chat(read_chat({"messages": messages}), Answers(entities, needed=()))

    _, asked, told = body["messages"]
    assert asked["tool_calls"][0]["function"]["arguments"] == masked
    assert told["content"] == masked


def test_the_text_of_a_chat_has_no_escapes_of_json() -> None:
    chat = read_chat({"messages": [user(r'["Jos\u00e9", "x\ty"]')]})

    assert chat.text == chat.query == '["José", "x\ty"]'


def test_a_value_split_over_two_strings_of_json_is_masked_in_both() -> None:
    chat = read_chat({"messages": [user('["Mill Lane", "Leeds"]')]})

    body, _ = mask_chat(chat, Answers((('Mill Lane", "Leeds', "LOC"),), needed=()))

    assert body["messages"][0]["content"] == '["<Location>", "<Location>"]'


def test_fields_that_identify_the_user_are_removed() -> None:
    messages = [{"role": "user", "name": "Ann", "content": "Hi?"}]
    request = {"model": "m", "messages": messages, "user": "ann@example.org", "metadata": {"a": 1}}

    body, _ = mask_chat(read_chat(request), Answers((), ()))

    assert body == {"model": "m", "messages": [{"role": "user", "content": "Hi?"}]}


@pytest.mark.parametrize("stop", ["Ann Lee:", ["Ann Lee:"]])
def test_the_texts_at_which_an_answer_stops_are_masked(stop: object) -> None:
    chat = read_chat({"messages": [user("Hi?")], "stop": stop})

    body, _ = mask_chat(chat, Answers((("Ann Lee", "PER"),), needed=()))

    assert body["stop"] == ["<Full Name>:"]


def test_settings_and_descriptions_of_tools_are_forwarded_unchanged() -> None:
    schema = {"name": "x", "description": "the person's name", "schema": {}}
    request = {
        "model": "org/model:1",
        "messages": [user("Hi?")],
        "stream": True,
        "stream_options": {"include_usage": True},
        "temperature": 0.5,
        "seed": None,
        "logit_bias": {"50256": -100},
        "reasoning_effort": "low",
        "stop": None,
        "response_format": {"type": "json_schema", "json_schema": schema},
        "tools": [{"type": "function", "function": {"name": "f", "description": "find Ann"}}],
    }

    body, _ = mask_chat(read_chat(request), Answers((), ()))

    assert body == request


@pytest.mark.parametrize(
    ("request_", "what"),
    [
        ({}, "'messages' must be"),
        ({"messages": []}, "'messages' must be"),
        ({"messages": [{"role": "system", "content": "x"}]}, "no message of the user"),
        ({"messages": [user("  ")]}, "no message of the user"),
        ({"messages": ["x"]}, "must be an object"),
        ({"messages": [user(7)]}, "must be text"),
        ({"messages": [user([{"type": "image_url", "image_url": {}}])]}, "other than text"),
        ({"messages": [user("x")], "prediction": {"content": "secret"}}, "'prediction'"),
        ({"messages": [user("x") | {"audio": {}}]}, "'audio' of a message"),
        ({"messages": [user("x") | {"tool_calls": [{"custom": {}}]}]}, "must be of a function"),
        ({"messages": [user("x") | {"tool_calls": 5}]}, "'tool_calls' of a message must be"),
        (
            {"messages": [user("x") | {"tool_calls": [call() | {"note": "a secret"}]}]},
            "'note' of a",
        ),
        ({"messages": [user("x") | {"tool_calls": [call() | {"id": "a secret"}]}]}, "'id' of a"),
        ({"messages": [user([{"type": "text", "text": "x", "note": "a secret"}])]}, "'note' of a"),
        ({"messages": [{"role": "a secret", "content": "x"}]}, "'role' of a message must be"),
        ({"messages": [{"role": "secret", "content": "x"}]}, "role of a message must be one of"),
        ({"messages": [{"content": "x"}]}, "role of a message must be one of"),
        ({"messages": [user("x")], "stream_options": {"x": "a secret"}}, "'x' of 'stream_options'"),
        ({"messages": [user("x")], "stream_options": "a secret"}, "must be an object"),
        ({"messages": [user("x")], "logit_bias": {"Ann": 1}}, "of 'logit_bias'"),
        ({"messages": [user("x")], "logit_bias": 1}, "'logit_bias' must be an object"),
        ({"messages": [user("x")], "logit_bias": [1]}, "'logit_bias' must be an object"),
        ({"messages": [user("x")], "stop": [7]}, "'stop' must be"),
        ({"messages": [user("x")], "seed": "a secret"}, "'seed' of a request must be a number"),
        ({"messages": [user("x")], "service_tier": "a secret"}, "'service_tier' of a request"),
    ],
)
def test_a_chat_that_cannot_be_masked_completely_is_refused(
    request_: dict[str, Any], what: str
) -> None:
    with pytest.raises(PiiBenchError, match=what) as caught:
        read_chat(request_)

    assert "secret" not in str(caught.value)


def test_tags_in_an_answer_and_in_tool_arguments_are_restored() -> None:
    calls = [call('{"to": "<full name>", "note": "<Note>"}')]
    message = {"role": "assistant", "content": "Dear [Full Name]", "tool_calls": calls}
    answer = {"choices": [{"index": 0, "message": message, "logprobs": {"content": []}}]}

    (choice,) = unmask_answer(answer, MAPPING)["choices"]

    assert choice["message"]["content"] == "Dear Ann Lee"
    restored = json.loads(choice["message"]["tool_calls"][0]["function"]["arguments"])
    assert restored == {"to": "Ann Lee", "note": 'said "no"\n'}
    assert "logprobs" not in choice


@pytest.mark.parametrize(
    "tag",
    [
        "<Full Name>",
        "[full name]",
        "&lt;Full Name&gt;",
        "<FULL  NAME>",
        "\\<Full Name\\>",
        "<Full Name&gt;",
        "&LT;Full Name&GT;",
        "&#60;Full Name&#62;",
        "\\&#x3C;Full Name\\&#x3E;",
    ],
)
def test_a_tag_is_restored_wherever_the_stream_splits_it(tag: str) -> None:
    text = f"a < b & c [1] {tag}, {tag}{tag} <Date 1> <Date 2> <"
    for size in range(1, len(text) + 1):
        stream = StreamUnmasker(MAPPING)
        parts = [text[at : at + size] for at in range(0, len(text), size)]
        restored = "".join([*map(stream.feed, parts), stream.finish()])
        assert restored == unmask(text, MAPPING)


@given(
    st.lists(
        st.sampled_from(
            [*"<>[]&lt;\\ x#", "&lt;", "&gt;", "&#60;", "&#x3E;", "&LT;", "Full Name", "date1"]
        )
    ),
    st.data(),
)
def test_a_stream_is_unmasked_like_the_whole_text(words: list[str], data: st.DataObject) -> None:
    text = "".join(words)
    cuts = data.draw(st.lists(st.integers(0, len(text)), max_size=5).map(sorted))
    stream = StreamUnmasker(MAPPING)
    parts = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]

    assert "".join([*map(stream.feed, parts), stream.finish()]) == unmask(text, MAPPING)


def test_text_that_cannot_be_a_tag_is_released() -> None:
    stream = StreamUnmasker(MAPPING)

    assert stream.feed("if a <") == "if a "
    assert stream.feed(" b then " + "x" * 60) == "< b then " + "x" * 60


def test_a_long_run_of_backslashes_is_released() -> None:
    text = "\\" * 200_000 + "a"

    # A search that is quadratic in the run would take minutes.
    assert StreamUnmasker(MAPPING).feed(text) == text


def test_chunks_of_several_choices_are_kept_apart() -> None:
    chunks = ChunkUnmasker(MAPPING)

    def feed(index: int, text: str, finish: str | None = None) -> str:
        choice = {"index": index, "delta": {"content": text}, "finish_reason": finish}
        (restored,) = chunks.feed({"choices": [choice]})["choices"]
        content: str = restored["delta"].get("content", "")
        return content

    assert [feed(0, "To <Full"), feed(1, "On <Da"), feed(0, " Name>"), feed(1, "te 1>!")] == [
        "To ",
        "On ",
        "Ann Lee",
        "3 May!",
    ]
    # The last chunk has the text that was held back.
    assert [feed(0, " <Full"), feed(0, "", "stop")] == [" ", "<Full"]


@pytest.mark.parametrize(
    "indexes",
    [
        pytest.param([1], id="one choice"),
        pytest.param([1, None, "0"], id="malformed numbers of choices"),
    ],
)
def test_the_rest_of_an_answer_without_a_finish_reason_is_a_chunk_of_its_own(
    indexes: list[Any],
) -> None:
    chunks = ChunkUnmasker(MAPPING)
    delta = {"content": "Is 3 < 4", "refusal": "Is 1 < 2"}
    choices = [{"index": n, "delta": dict(delta), "finish_reason": None} for n in indexes]
    for choice in chunks.feed({"id": "x", "choices": choices})["choices"]:
        assert choice["delta"] == {"content": "Is 3 ", "refusal": "Is 1 "}

    rest = {"content": "< 4", "refusal": "< 2"}
    assert chunks.finish() == {
        "id": "x",
        "choices": [{"index": index, "delta": rest, "finish_reason": None} for index in indexes],
    }
    assert chunks.finish() is None


def test_streamed_tool_arguments_are_restored() -> None:
    chunks = ChunkUnmasker(MAPPING)
    pieces = ['{"to": "<Fu', 'll Name>", "note"', ': "<Note', '>"}']
    restored = ""
    for number, piece in enumerate(pieces):
        part = {"index": 0, "function": {"arguments": piece}}
        finish = "tool_calls" if number == len(pieces) - 1 else None
        choice = {"index": 0, "delta": {"tool_calls": [part]}, "finish_reason": finish}
        (unmasked,) = chunks.feed({"choices": [choice]})["choices"]
        restored += "".join(c["function"]["arguments"] for c in unmasked["delta"]["tool_calls"])

    assert json.loads(restored) == {"to": "Ann Lee", "note": 'said "no"\n'}
