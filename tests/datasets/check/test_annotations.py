from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_bench.datasets.catalog import load_dataset
from pii_bench.datasets.check.annotations import (
    format_problems,
    leak_problems,
    query_problems,
    span_problems,
)
from pii_bench.datasets.sample import Entity, Sample, Subject
from tests.datasets.check.samples import ANN, ann, build, rules

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pii_bench.datasets.check.text import Problem

_CATEGORIES_WITH_PATTERN: Final = frozenset(
    {
        *("Account Balance", "Annual Bonus", "Bank Account", "Credit Card", "Credit Limit", "Date"),
        *("Debt Ratio", "Driver's License", "Email Address", "Employee ID", "IP Address"),
        *("Investment Return", "Loan Amount", "Monthly Expenses", "Monthly Income"),
        *("Passport Number", "Password Hash", "Phone Number", "ROI", "Social Media Handle"),
        *("Social Security Number", "Social Security Payment", "Student ID", "Tax ID"),
        *("Tax Payment", "Time"),
    }
)


def holding(description: str, *entities: Entity) -> Sample:
    return Sample("s1", description, None, (Subject("A", entities),), ())


@pytest.mark.parametrize("check", [span_problems, format_problems, query_problems, leak_problems])
def test_a_sound_sample_passes(check: Callable[[Sample], Iterator[Problem]]) -> None:
    assert rules(check, ann()) == []


@pytest.mark.parametrize(
    ("text", "span", "rule", "reason"),
    [
        ("is 32.", (7, 14), "span-exact", "[7, 14] does not hold 'Ann Lee'"),
        ("is 32.", (-14, -7), "span-exact", "[-14, -7] does not hold 'Ann Lee'"),
        ("is 32.", (0, 7), "span-exact", "[0, 7] of 'Ann Lee' is listed twice"),
        ("is Ann Lee.", None, "span-complete", "'Ann Lee' at [11, 18] is not annotated"),
    ],
)
def test_inexact_repeated_and_missing_spans_are_problems(
    text: str, span: tuple[int, int] | None, rule: str, reason: str
) -> None:
    spans = ((0, 7), span) if span else ((0, 7),)
    sample = holding(f"Ann Lee {text}", Entity("Ann Lee", "PER", spans=spans))

    assert [(p.rule, p.reason) for p in span_problems(sample)] == [(rule, reason)]


def test_an_occurrence_inside_a_longer_entity_is_complete() -> None:
    hull = Entity("Hull", "LOC", spans=((22, 26),))
    university = Entity("University of Hull", "ORG", spans=((0, 18),))

    assert rules(span_problems, holding("University of Hull in Hull", university, hull)) == []
    assert rules(span_problems, holding("University of Hull in Hull", hull)) == ["span-complete"]


def test_an_occurrence_annotated_for_another_subject_is_complete() -> None:
    first = Subject("A", (Entity("Hull", "LOC", spans=((0, 4),)),))
    second = Subject("B", (Entity("Hull", "LOC", spans=((9, 13),)),))

    assert rules(span_problems, Sample("s1", "Hull and Hull", None, (first, second), ())) == []


def test_an_entity_without_spans_must_occur() -> None:
    assert rules(span_problems, holding("Ann is here.", Entity("Ann", "PER"))) == []
    assert rules(span_problems, holding("Anna is here.", Entity("Ann", "PER"))) == ["span-complete"]


def test_overlapping_spans_are_a_problem_unless_one_contains_the_other() -> None:
    sample = build("At old Hull pier.", {"old Hull": "City/Region", "Hull pier": "Landmark"})

    (problem,) = span_problems(sample)
    assert (problem.rule, problem.reason) == (
        "span-overlap",
        "'old Hull' and 'Hull pier' overlap at 7",
    )


SPANS = st.tuples(st.integers(0, 8), st.integers(1, 5)).map(lambda pair: (pair[0], sum(pair)))


@given(st.sets(SPANS, max_size=8))
def test_each_span_that_crosses_an_earlier_one_is_reported(spans: set[tuple[int, int]]) -> None:
    crossing = {
        second for first in spans for second in spans if first[0] < second[0] < first[1] < second[1]
    }
    entities = [Entity("x" * (end - start), "PER", spans=((start, end),)) for start, end in spans]
    reasons = [
        problem.reason
        for problem in span_problems(holding("x" * 13, *entities))
        if problem.rule == "span-overlap"
    ]

    assert sorted(int(reason.rpartition(" ")[2]) for reason in reasons) == sorted(
        start for start, _ in crossing
    )


def test_a_repeated_entity_is_a_problem() -> None:
    sample = ann()
    (subject,) = sample.subjects
    twice = replace(subject, entities=(*subject.entities, subject.entities[1]))

    assert rules(span_problems, replace(sample, subjects=(twice,))) == ["entity-repeated"]


@pytest.mark.parametrize(
    ("changes", "rule", "reason"),
    [
        ({"related": [("A", "baker")]}, "related-outside", "'baker' is no entity of subject A"),
        ({"related": [("B", "potter")]}, "related-outside", "'potter' is no entity of subject B"),
        ({"related": [("A", "Ann Lee")]}, "related-person", "'Ann Lee' is a person's name"),
        (
            {"related": [("A", "32"), ("A", "32")]},
            "related-repeated",
            "'32' of subject A is listed 2 times",
        ),
        ({"related": []}, "related-count", "0 entities are needed, not 1 to 3"),
        ({"joined": list("abcde")}, "related-count", "1 entities are needed, not 3 to 9"),
        ({"query": "Is a Potter rich?"}, "query-value", "the query holds 'potter'"),
        ({"query": "Is 32 old?"}, "query-value", "the query holds '32'"),
        ({"query": "Is ANN LEE right?"}, "query-value", "the query holds 'Ann Lee'"),
        ({"query": "Is Lee right?"}, "query-name", "the query holds 'Lee', of a name"),
        ({"query": " "}, "query-empty", "the query has no text"),
    ],
)
def test_faults_of_the_query_are_problems(changes: dict[str, Any], rule: str, reason: str) -> None:
    (problem,) = query_problems(ann(**changes))

    assert (problem.rule, problem.reason) == (rule, reason)


@pytest.mark.parametrize(
    "query", ["Is pottery sound?", "Would 1,320 or 2032 do?", "Is an annual lee shore safe?"]
)
def test_a_query_may_contain_longer_words(query: str) -> None:
    assert rules(query_problems, ann(query=query)) == []


def test_a_handle_without_its_sign_is_a_name() -> None:
    facts = {"@moss77": "Social Media Handle", "32": "Age"}
    sample = build("@moss77, moss77 is 32.", facts, query="Is moss77 old?", related=[("A", "32")])

    assert rules(query_problems, sample) == ["query-name"]
    assert rules(leak_problems, sample) == ["name-leak"]


def test_only_conversations_need_more_than_three_entities() -> None:
    facts = {"32": "Age", "Hull": "City/Region", "O+": "Blood Type", "gout": "Medical Condition"}
    text = "Ann Lee, 32, of Hull, O+, has gout."
    needs = [("A", fact) for fact in facts]

    alone = build(text, ANN | facts, related=needs)
    joined = build(text, ANN | facts, related=needs, joined=list("abcde"))

    assert rules(query_problems, alone) == ["related-count"]
    assert rules(query_problems, joined) == []


def test_a_shared_entity_may_be_needed_for_both_people() -> None:
    hull = {"Hull": "City/Region"}
    both = build("Both live in Hull.", hull, hull, related=[("A", "Hull"), ("B", "Hull")])

    assert rules(query_problems, both) == []


def test_a_sample_without_query_passes() -> None:
    assert rules(query_problems, ann(query=None, related=[])) == []


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("write to a.b@post.example.org.", "e-mail address 'a.b@post.example.org'"),
        ("call +46 31 390 06 00 now", "phone number '+46 31 390 06 00'"),
        ("call (902) 555-0147 now", "phone number '(902) 555-0147'"),
        ("ask @moss7!", "handle '@moss7'"),
        ("ticket 48213, please", "run of digits '48213'"),
        ("card 4988 4388 4388 4305", "number in groups '4988 4388 4388 4305'"),
        ("under 666-31-0847", "social security number '666-31-0847'"),
        ("about $2,180 a month", "currency amount '$2,180'"),
        ("some SEK 900", "currency amount 'SEK 900'"),
        ("1,200 kr", "currency amount '1,200 kr'"),
        ("on 2024-11-06", "date '2024-11-06'"),
        ("on 6 November 2024", "date '6 November 2024'"),
        ("on the 6th of November", "date '6th of November'"),
        ("on Nov. 6, 2024", "date 'Nov. 6, 2024'"),
        ("on 06/11/24", "date '06/11/24'"),
        ("at 9:40:00", "time '9:40:00'"),
        ("from 203.0.113.7.", "IPv4 address '203.0.113.7'"),
        ("from 2001:db8::9e,", "IPv6 address '2001:db8::9e'"),
        ("hash " + "ab" * 16, f"hexadecimal string '{'ab' * 16}'"),
        ("made 6.85% of it", "percentage '6.85%'"),
    ],
)
def test_unannotated_pii_is_a_leak(text: str, what: str) -> None:
    (problem,) = leak_problems(build(text))

    assert problem.rule == "leak"
    assert problem.reason.startswith(f"{what} at ")


@pytest.mark.parametrize(
    "text",
    [
        "four quid for 3 buns at 9:40, room R2, ISO 9001, chapter 12, page 1204",
        "May she march in June 2024? In 2024, 60% of them said: yes :: no, 3:2, 24/7",
        "meet @ noon; 10 % off; a cm or two",
    ],
)
def test_other_numbers_are_no_leak(text: str) -> None:
    assert rules(leak_problems, build(text)) == []


def test_a_full_stop_after_a_date_is_not_part_of_it() -> None:
    sample = replace(build("It was on 14 January."), meta={"public": ["14 January"]})

    assert rules(leak_problems, sample) == []


def test_pii_annotated_in_part_is_a_leak() -> None:
    assert rules(leak_problems, holding("pay $2,180.50", Entity("$2,180", "QUANTITY"))) == ["leak"]


def test_only_public_values_are_no_leak() -> None:
    sample = replace(build("£3.20 a loaf, £900 a month"), meta={"public": ["£3.20"]})

    (problem,) = leak_problems(sample)
    assert "'£900'" in problem.reason


@pytest.mark.parametrize(
    ("description", "part"), [("Ann came.", "Ann"), ("Ms Lee's bag stayed.", "Lee")]
)
def test_a_part_of_a_name_by_itself_is_a_leak(description: str, part: str) -> None:
    (problem,) = leak_problems(build(f"Ann Lee. {description}", {"Ann Lee": "Full Name"}))

    place = 9 + description.find(part)
    assert problem.rule == "name-leak"
    assert problem.reason == f"part {part!r} of a person's name at {place} is not annotated"


def test_particles_nicknames_and_shared_names_are_no_leak() -> None:
    description = "Ann van Lee met Bo Lee by the van on an annual leave, with Captain Fig, captain."
    first, second = {"Ann van Lee": "Full Name", "Captain Fig": "Nickname"}, {"Bo Lee": "Full Name"}

    assert rules(leak_problems, build(description, first, second)) == []


def test_removed_annotations_of_values_with_a_pattern_are_found() -> None:
    missed = [
        (sample.id, entity.category)
        for sample in load_dataset("demo").samples
        for entity in sample.entities
        if entity.category in _CATEGORIES_WITH_PATTERN
        and "leak" not in rules(leak_problems, without(sample, entity))
    ]

    assert missed == []


def without(sample: Sample, entity: Entity) -> Sample:
    subjects = (
        replace(subject, entities=tuple(e for e in subject.entities if e.text != entity.text))
        for subject in sample.subjects
    )
    return replace(sample, subjects=tuple(subjects))


@pytest.mark.parametrize(
    ("text", "category", "pii_type", "problems"),
    [
        ("300.1.1.1", "IP Address", "CODE", [("format", "'300.1.1.1' is no IP Address")]),
        ("32", "Age", "CODE", [("category", "'32': Age is of type DEM, not CODE")]),
        ("7", "Shoe Size", "DEM", [("category", "'Shoe Size' is none of the 55")]),
        # Foreign data.
        ("anything at all", None, "CODE", []),
    ],
)
def test_wrong_categories_and_formats_are_problems(
    text: str, category: str | None, pii_type: str, problems: list[tuple[str, str]]
) -> None:
    sample = holding(text, Entity(text, pii_type, category))

    assert [(problem.rule, problem.reason) for problem in format_problems(sample)] == problems


def test_a_perturbed_sample_has_no_format() -> None:
    mark = {"kind": "ocr", "dataset": "single", "source": "single-1"}
    sample = replace(holding("3l", Entity("3l", "DEM", "Age")), meta={"perturbation": mark})

    assert rules(format_problems, sample) == []
