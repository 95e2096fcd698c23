"""Answers to the prompt `json`."""

from __future__ import annotations

import pytest

from pii_bench.models.base import Finish
from pii_bench.prompting.parsing.answers import Parsed
from pii_bench.prompting.parsing.labelled import parse_labelled
from pii_bench.tasks import Status
from pii_bench.taxonomy import taxonomy

LABELS = taxonomy("ai4privacy")
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
        ('{"PII": []}', ()),
        ('{"thought": "Ann, 32", "pii": {"AGE": ["32"]}}', ((("32", "AGE"),),)),
    ],
)
def test_the_form_that_is_asked_for(said: str, subjects: object) -> None:
    assert parse_labelled(said, LABELS) == Parsed(subjects, Status.OK)


@pytest.mark.parametrize(
    "said",
    [
        '```json\n{"PII": {"FIRSTNAME": ["Ann"], "AGE": ["32"]}}\n```',
        'Here: {"PII": {"FIRSTNAME": ["Ann"], "AGE": ["32"]}}',
        "{'PII': {'FIRSTNAME': ['Ann'], 'AGE': ['32']}}",
        '{"FIRSTNAME": ["Ann"], "AGE": ["32"]}',
        '{"PII": {"FIRSTNAME": "Ann", "AGE": ["32"]}}',
        '{"PII": {"FIRSTNAME": ["Ann"], "AGE": [32]}}',
        '{"PII": {"firstname": ["Ann"], "AGE_1": ["32"]}}',
        '{"PII": {"FIRSTNAME": ["Ann", " "], "AGE": ["32"]}}',
        '{"PII"*: {"FIRSTNAME": ["Ann"], "AGE": ["32"]}}',
        '{"PII": {"AGE": ["9"]}} No: {"PII": {"FIRSTNAME": ["Ann"], "AGE": ["32"]}}',
    ],
)
def test_what_is_repaired(said: str) -> None:
    assert parse_labelled(said, LABELS) == Parsed(ANN, Status.REPAIRED)


@pytest.mark.parametrize(
    ("said", "parsed"),
    [
        ('{"PII": {"FIRSTNAME": ["Ann"], "AGE": ["32"]', Parsed(ANN, Status.REPAIRED, cut=True)),
        # A label that was not asked for stays.
        ('{"PII": {"pet": ["Rex"]}}', Parsed(((("Rex", "PET"),),), Status.REPAIRED)),
        ("None", Parsed((), Status.REPAIRED)),
    ],
)
def test_cut_answers_unknown_labels_and_nothing(said: str, parsed: object) -> None:
    assert parse_labelled(said, LABELS) == parsed


@pytest.mark.parametrize(
    ("said", "finish", "status"),
    [
        ("", Finish.STOP, Status.EMPTY),
        ("", Finish.FILTER, Status.FILTERED),
        ("I cannot help with that.", Finish.STOP, Status.REFUSED),
        ("There is no PII.", Finish.STOP, Status.MALFORMED),
        ("Ann is 32.", Finish.STOP, Status.MALFORMED),
        ('{"answer": ["Ann"]}', Finish.STOP, Status.MALFORMED),
        ('{"PII": "none"}', Finish.STOP, Status.MALFORMED),
        ('{"PII": {"AGE": ["32"], "CITY": ["Par', Finish.LENGTH, Status.TRUNCATED),
    ],
)
def test_what_is_no_answer(said: str, finish: Finish, status: Status) -> None:
    assert parse_labelled(said, LABELS, finish) == Parsed(None, status)
