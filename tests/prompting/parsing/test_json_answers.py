"""Answers in JSON: to the prompt `json`, and in a form that the provider enforced."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_bench.models.base import Finish
from pii_bench.prompting.parsing import (
    ParsedDetection,
    ParsedRelated,
    parse_detection,
    parse_labelled,
    parse_related,
    parse_structured_detection,
    parse_structured_labelled,
    parse_structured_related,
)
from pii_bench.tasks import Status
from pii_bench.taxonomy import PiiType, taxonomy

LABELS = taxonomy("ai4privacy")
SUBJECTS = '{"subjects": [{"entities": [{"text": "Ann Lee", "type": "PER"}]}]}'
texts = st.text(alphabet=st.characters(exclude_categories=["Cs"]))
entities = st.tuples(texts, st.sampled_from([pii_type.value for pii_type in PiiType]))
ANN = ((("Ann", "FIRSTNAME"), ("32", "AGE")),)


@pytest.mark.parametrize(
    ("said", "subjects"),
    [
        ('{"PII": {"FIRSTNAME": ["Ann"], "AGE": ["32"]}}', ANN),
        ('{\n "PII": {"FIRSTNAME": ["Ann"],\n "AGE": ["32"], "CITY": []}\n}\n', ANN),
        ('{"PII": {"AGE": ["32"], "AGE": ["33"]}}', ((("32", "AGE"), ("33", "AGE")),)),
        ('<think>Who?</think>{"PII": {"AGE": ["32"]}}', ((("32", "AGE"),),)),
        ('{"PII": {}}', ()),
        ('{"PII": {"AGE": []}}', ()),
    ],
)
def test_the_form_that_is_asked_for(said: str, subjects: object) -> None:
    assert parse_labelled(said, LABELS) == ParsedDetection(subjects, Status.OK)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("said", "repairs"),
    [
        ('```json\n{"PII": {"FIRSTNAME": ["Ann"], "AGE": ["32"]}}\n```', ("code-fence",)),
        ('Here: {"PII": {"FIRSTNAME": ["Ann"], "AGE": ["32"]}}', ("prose-around",)),
        ("{'PII': {'FIRSTNAME': ['Ann'], 'AGE': ['32']}}", ("single-quotes",)),
        ('{"FIRSTNAME": ["Ann"], "AGE": ["32"]}', ("other-shape",)),
        ('{"PII": {"FIRSTNAME": "Ann", "AGE": ["32"]}}', ("other-shape",)),
        ('{"PII": {"FIRSTNAME": ["Ann"], "AGE": [32]}}', ("non-string-item",)),
        ('{"PII": {"firstname": ["Ann"], "AGE_1": ["32"]}}', ("type-alias",)),
        ('{"PII": {"FIRSTNAME": ["Ann", " "], "AGE": ["32"]}}', ("blank-item",)),
        ('{"PII": {"FIRSTNAME": ["Ann"], "AGE": ["32"]', ("close-open",)),
        (
            '{"PII": {"AGE": ["9"]}} No: {"PII": {"FIRSTNAME": ["Ann"], "AGE": ["32"]}}',
            ("prose-around", "last-group"),
        ),
    ],
)
def test_what_is_repaired(said: str, repairs: tuple[str, ...]) -> None:
    assert parse_labelled(said, LABELS) == ParsedDetection(ANN, Status.REPAIRED, repairs)


def test_a_label_that_was_not_asked_for_stays() -> None:
    assert parse_labelled('{"PII": {"pet": ["Rex"]}}', LABELS) == ParsedDetection(
        ((("Rex", "PET"),),), Status.REPAIRED, ("unknown-type",)
    )


def test_words_for_nothing() -> None:
    found = ParsedDetection((), Status.REPAIRED, ("explicit-none",))

    assert parse_labelled("None", LABELS) == found
    assert parse_labelled("There is no PII.", LABELS).status is Status.MALFORMED


@pytest.mark.parametrize(
    ("said", "finish", "status"),
    [
        ("", Finish.STOP, Status.EMPTY),
        ("", Finish.FILTER, Status.FILTERED),
        ("I cannot help with that.", Finish.STOP, Status.REFUSED),
        ("Ann is 32.", Finish.STOP, Status.MALFORMED),
        ('{"answer": ["Ann"]}', Finish.STOP, Status.MALFORMED),
        ('{"PII": "none"}', Finish.STOP, Status.MALFORMED),
        ('{"PII": {"AGE": ["32"], "CITY": ["Par', Finish.LENGTH, Status.TRUNCATED),
    ],
)
def test_what_is_no_answer(said: str, finish: Finish, status: Status) -> None:
    assert parse_labelled(said, LABELS, finish) == ParsedDetection(None, status)


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

    assert found == ParsedDetection(ANN if status is Status.OK else None, status)


def test_subjects_and_their_entities_are_read() -> None:
    answer = """{"subjects": [
        {"entities": [{"text": "Ann Lee", "type": "PER"}, {"type": "DEM", "text": "32"}]},
        {"entities": []}
    ]}"""

    assert parse_structured_detection(answer) == ParsedDetection(
        ((("Ann Lee", "PER"), ("32", "DEM")), ()), Status.OK
    )


def test_the_answer_is_read_and_its_reasoning_is_not() -> None:
    answer = '{"thought": "### Answer: [\\"40\\"]", "answer": ["32", "Acme"]}'

    assert parse_structured_related(answer) == ParsedRelated(("32", "Acme"), Status.OK)


def test_nothing_is_an_answer() -> None:
    assert parse_structured_detection('{"subjects": []}').subjects == ()
    assert parse_structured_related('{"answer": []}').texts == ()


@given(st.lists(st.lists(entities, max_size=3), max_size=3))
def test_what_the_schema_allows_comes_back_as_it_was(subjects: list[list[tuple[str, str]]]) -> None:
    written = {
        "subjects": [
            {"entities": [{"text": text, "type": name} for text, name in subject]}
            for subject in subjects
        ]
    }

    read = parse_structured_detection(json.dumps(written), Finish.STOP)

    assert read == ParsedDetection(tuple(map(tuple, subjects)), Status.OK)


@given(st.lists(texts))
def test_any_list_of_texts_comes_back_as_it_was(answer: list[str]) -> None:
    read = parse_structured_related(json.dumps({"answer": answer}), Finish.STOP)

    assert read == ParsedRelated(tuple(answer), Status.OK)


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


@pytest.mark.parametrize("answer", ['### Answer: ["32"]', '```json\n{"answer": ["32"]}\n```'])
def test_what_the_prompts_parser_repairs_is_malformed_here(answer: str) -> None:
    assert parse_related(answer).texts == ("32",)
    assert parse_structured_related(answer) == ParsedRelated(None, Status.MALFORMED)


def test_the_lines_of_the_prompt_are_malformed_here() -> None:
    answer = 'Subject1{"Ann Lee": "PER"}'

    assert parse_detection(answer).status is Status.OK
    assert parse_structured_detection(answer).status is Status.MALFORMED


@pytest.mark.parametrize(
    "answer",
    [
        "[]",
        "null",
        '{"subjects": {}}',
        '{"subjects": [], "note": ""}',
        '{"subjects": [[]]}',
        '{"subjects": [{"entities": [], "name": "Ann"}]}',
        '{"subjects": [{"entities": [["Ann Lee", "PER"]]}]}',
        '{"subjects": [{"entities": [{"text": "Ann Lee"}]}]}',
        '{"subjects": [{"entities": [{"text": "Ann Lee", "type": "per"}]}]}',
        '{"subjects": [{"entities": [{"text": "Ann Lee", "type": ["PER"]}]}]}',
        '{"subjects": [{"entities": [{"text": 32, "type": "DEM"}]}]}',
        '{"subjects": [{"entities": [{"text": "\\ud83d", "type": "PER"}]}]}',
        "[" * 100_000,
        "1" * 5_000,
    ],
)
def test_json_of_another_shape_holds_no_subjects(answer: str) -> None:
    assert parse_structured_detection(answer) == ParsedDetection(None, Status.MALFORMED)


@pytest.mark.parametrize(
    "answer",
    [
        "[]",
        "{}",
        '{"answer": "32"}',
        '{"answer": [32]}',
        '{"answer": [null]}',
        '{"answer": ["\\udc00"]}',
        '{"thought": ["32"], "answer": []}',
    ],
)
def test_json_of_another_shape_holds_no_answer(answer: str) -> None:
    assert parse_structured_related(answer) == ParsedRelated(None, Status.MALFORMED)


def test_an_escaped_pair_of_surrogates_is_a_character() -> None:
    assert parse_structured_related('{"answer": ["\\ud83d\\ude00"]}').texts == ("😀",)
