"""Answers in free text around an answer, and in a form that the provider enforced."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_bench.models.base import Finish
from pii_bench.prompting.parsing.answers import (
    Parsed,
    parse_structured_detection,
    parse_structured_labelled,
    parse_structured_related,
)
from pii_bench.prompting.parsing.detection import parse_detection
from pii_bench.prompting.parsing.texts import parse_related
from pii_bench.tasks import Status
from pii_bench.taxonomy import PiiType, taxonomy

RELATED = '### Answer: ["Acme"]'
DETECTION = 'Subject1{"Ann Lee": "PER"}'
LABELS = taxonomy("ai4privacy")
SUBJECTS = '{"subjects": [{"entities": [{"text": "Ann Lee", "type": "PER"}]}]}'
texts = st.text(alphabet=st.characters(exclude_categories=["Cs"]))
ANN = ((("Ann", "FIRSTNAME"), ("32", "AGE")),)
entities = st.tuples(texts, st.sampled_from([pii_type.value for pii_type in PiiType]))


@pytest.mark.parametrize(
    ("answer", "finish", "status"),
    [
        *((each, Finish.FILTER, Status.FILTERED) for each in ("", RELATED, DETECTION)),
        *((each, Finish.REFUSAL, Status.REFUSED) for each in ("", RELATED, DETECTION)),
        *(
            (blank, finish, status)
            for blank in ("", " \n\t", "<think>hm</think>\n", "hm</think>")
            for finish, status in (
                (Finish.STOP, Status.EMPTY),
                (Finish.UNKNOWN, Status.EMPTY),
                (Finish.LENGTH, Status.TRUNCATED),
            )
        ),
        (f"<think>So:\n{RELATED}\n{DETECTION}", Finish.STOP, Status.MALFORMED),
        (f"<think>So:\n{RELATED}\n{DETECTION}", Finish.LENGTH, Status.TRUNCATED),
        ("I'm sorry, but I can't help with that.", Finish.STOP, Status.REFUSED),
        ("I’m sorry, I cannot process personal information.", Finish.STOP, Status.REFUSED),
        ("I cannot assist with identifying individuals.", Finish.STOP, Status.REFUSED),
        ("As an AI language model, I do not handle it.", Finish.STOP, Status.REFUSED),
        ("I must decline this request.", Finish.STOP, Status.REFUSED),
        ("<think>Risky.</think>I won't share personal details.", Finish.STOP, Status.REFUSED),
        # Words of a refusal alone are none, nor is one far into the text.
        ("She works as an AI engineer in a lab.", Finish.STOP, Status.MALFORMED),
        ("I cannot identify any fitting text.", Finish.STOP, Status.MALFORMED),
        ("The text is about work. " * 20 + "I cannot help.", Finish.STOP, Status.MALFORMED),
    ],
)
def test_what_is_no_answer(answer: str, finish: Finish, status: Status) -> None:
    assert parse_related(answer, finish) == Parsed(None, status)
    assert parse_detection(answer, finish) == Parsed(None, status)


@pytest.mark.parametrize(
    "thought",
    [
        '<think>Maybe ["Bonn"].</think>',
        "<Thinking>\nSubject1{}\n</Thinking>\n\n",
        "<REASONING></REASONING>",
        '### Answer: ["Bonn"]\nSubject1{"x": "LOC"}\n</think>\n',
        "<think>a</think><think>b</think>",
        "<think>the tag <think> again</think>",
    ],
)
def test_thought_is_removed_and_no_repair(thought: str) -> None:
    assert parse_related(thought + "\n" + RELATED) == Parsed(("Acme",), Status.OK)
    assert parse_detection(thought + DETECTION) == Parsed(((("Ann Lee", "PER"),),), Status.OK)


@pytest.mark.parametrize(
    ("answer", "parsed"),
    [
        (f'{RELATED}\n<think>or ["Bonn"]?</think>', Parsed(("Acme",), Status.OK)),
        (f"I can't share more than this.\n{RELATED}", Parsed(("Acme",), Status.OK)),
        ("### Answer: I'm sorry, but I can't help.", Parsed(None, Status.REFUSED)),
    ],
)
def test_thought_or_refusal_beside_a_list_or_in_its_place(
    answer: str, parsed: Parsed[tuple[str, ...]]
) -> None:
    assert parse_related(answer) == parsed


@pytest.mark.parametrize(
    ("said", "status"),
    [
        ('{"PII": {"FIRSTNAME": ["Ann"], "AGE": ["32"]}}', Status.OK),
        ('Here: {"PII": {}}', Status.MALFORMED),
        ('{"PII": {"PET": []}}', Status.MALFORMED),
        ('{"PII": {"AGE": [32]}}', Status.MALFORMED),
        ('{"PII": []}', Status.MALFORMED),
        ('{"PII": {"AGE": []}, "more": 1}', Status.MALFORMED),
    ],
)
def test_what_a_provider_enforced_is_not_repaired(said: str, status: Status) -> None:
    found = parse_structured_labelled(said, LABELS)

    assert found == Parsed(ANN if status is Status.OK else None, status)


def test_the_answer_is_read_and_its_reasoning_is_not() -> None:
    answer = '{"thought": "### Answer: [\\"40\\"]", "answer": ["32", "Acme"]}'

    assert parse_structured_related(answer) == Parsed(("32", "Acme"), Status.OK)


@given(st.lists(st.lists(entities, max_size=3), max_size=3))
def test_what_the_schema_allows_comes_back_as_it_was(subjects: list[list[tuple[str, str]]]) -> None:
    written = {
        "subjects": [
            {"entities": [{"type": name, "text": text} for text, name in subject]}
            for subject in subjects
        ]
    }

    read = parse_structured_detection(json.dumps(written), Finish.STOP)

    assert read == Parsed(tuple(map(tuple, subjects)), Status.OK)


@given(st.lists(texts))
def test_any_list_of_texts_comes_back_as_it_was(answer: list[str]) -> None:
    read = parse_structured_related(json.dumps({"answer": answer}), Finish.STOP)

    assert read == Parsed(tuple(answer), Status.OK)


@pytest.mark.parametrize(
    ("text", "finish", "status"),
    [
        ("", Finish.STOP, Status.EMPTY),
        (" \n", Finish.LENGTH, Status.TRUNCATED),
        (SUBJECTS, Finish.FILTER, Status.FILTERED),
        (SUBJECTS, Finish.REFUSAL, Status.REFUSED),
        (SUBJECTS[:-1], Finish.LENGTH, Status.TRUNCATED),
        (SUBJECTS[:-1], Finish.STOP, Status.MALFORMED),
        (SUBJECTS, Finish.LENGTH, Status.OK),
        ("{}", Finish.LENGTH, Status.MALFORMED),
    ],
)
def test_how_it_ended_tells_what_became_of_it(text: str, finish: Finish, status: Status) -> None:
    assert parse_structured_detection(text, finish).status is status


@pytest.mark.parametrize(
    "answer",
    [
        "[]",
        "null",
        DETECTION,
        '{"subjects": {}}',
        '{"subjects": [], "note": ""}',
        '{"subjects": [{"entities": [], "name": "Ann"}]}',
        '{"subjects": [{"entities": [["Ann Lee", "PER"]]}]}',
        '{"subjects": [{"entities": [{"text": "Ann Lee", "type": "per"}]}]}',
        '{"subjects": [{"entities": [{"text": "Ann Lee", "type": ["PER"]}]}]}',
        '{"subjects": [{"entities": [{"text": 32, "type": "DEM"}]}]}',
        '{"subjects": [{"entities": [{"text": "\\ud83d", "type": "PER"}]}]}',
        "[" * 100_000,
        "1" * 5_000,
    ],
)
def test_json_of_another_shape_holds_no_subjects(answer: str) -> None:
    assert parse_structured_detection(answer) == Parsed(None, Status.MALFORMED)


@pytest.mark.parametrize(
    "answer",
    [
        "[]",
        "{}",
        RELATED,
        '```json\n{"answer": ["32"]}\n```',
        '{"answer": "32"}',
        '{"answer": [32]}',
        '{"answer": ["\\udc00"]}',
        '{"thought": ["32"], "answer": []}',
    ],
)
def test_json_of_another_shape_holds_no_answer(answer: str) -> None:
    assert parse_structured_related(answer) == Parsed(None, Status.MALFORMED)


def test_an_escaped_pair_of_surrogates_is_a_character() -> None:
    assert parse_structured_related('{"answer": ["\\ud83d\\ude00"]}').payload == ("😀",)
