"""Answers to the prompt `json`."""

from __future__ import annotations

import pytest

from pii_bench.models.base import Finish
from pii_bench.prompting.parsing.answers import ParsedDetection
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
