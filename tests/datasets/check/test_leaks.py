from __future__ import annotations

from dataclasses import replace
from typing import Final

import pytest

from pii_bench.datasets.catalog import load_dataset
from pii_bench.datasets.check.leaks import leak_problems
from pii_bench.datasets.sample import Entity, Sample, Subject
from tests.datasets.check.samples import ann, build, rules

_WRITTEN_LIKE_NOTHING_ELSE: Final = frozenset(
    {
        "Account Balance",
        "Annual Bonus",
        "Bank Account",
        "Credit Card",
        "Credit Limit",
        "Date",
        "Debt Ratio",
        "Driver's License",
        "Email Address",
        "Employee ID",
        "IP Address",
        "Investment Return",
        "Loan Amount",
        "Monthly Expenses",
        "Monthly Income",
        "Passport Number",
        "Password Hash",
        "Phone Number",
        "ROI",
        "Social Media Handle",
        "Social Security Number",
        "Social Security Payment",
        "Student ID",
        "Tax ID",
        "Tax Payment",
        "Time",
    }
)


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
def test_what_looks_like_pii_is_a_leak(text: str, what: str) -> None:
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
def test_numbers_that_are_nobodys(text: str) -> None:
    assert rules(leak_problems, build(text)) == []


def test_a_full_stop_behind_a_date_is_none_of_it() -> None:
    sample = replace(build("It was on 14 January."), meta={"public": ["14 January"]})

    assert rules(leak_problems, sample) == []


def test_what_is_public_is_no_leak_and_what_is_not_is() -> None:
    sample = replace(build("£3.20 a loaf, £900 a month"), meta={"public": ["£3.20"]})

    (problem,) = leak_problems(sample)
    assert "'£900'" in problem.reason


def test_what_is_annotated_in_part_leaks() -> None:
    sample = Sample(
        "s1", "pay $2,180.50", None, (Subject("A", (Entity("$2,180", "QUANTITY"),)),), ()
    )

    assert rules(leak_problems, sample) == ["leak"]


@pytest.mark.parametrize(
    ("description", "part"),
    [
        ("Ann Lee came. Ann left.", "Ann"),
        ("Ann Lee came. Ms Lee's bag stayed.", "Lee"),
    ],
)
def test_a_part_of_a_name_alone_is_a_leak(description: str, part: str) -> None:
    (problem,) = leak_problems(build(description, {"Ann Lee": "Full Name"}))

    assert problem.rule == "name-leak"
    assert (
        problem.reason == f"{part!r} of a person's name stands alone at {description.rfind(part)}"
    )


def test_a_handle_without_its_sign_is_a_leak() -> None:
    sample = build("I am @moss77, moss77 everywhere.", {"@moss77": "Social Media Handle"})

    assert rules(leak_problems, sample) == ["name-leak"]


def test_parts_of_names_that_are_no_leak() -> None:
    description = "Ann van Lee met Bo Lee by the van on an annual leave, with Captain Fig, captain."
    first, second = {"Ann van Lee": "Full Name", "Captain Fig": "Nickname"}, {"Bo Lee": "Full Name"}

    assert rules(leak_problems, build(description, first, second)) == []


def test_a_sound_sample_passes() -> None:
    assert rules(leak_problems, ann()) == []


def test_every_value_that_is_written_like_nothing_else_is_found_without_its_annotation() -> None:
    missed = [
        (sample.id, entity.category)
        for sample in load_dataset("demo").samples
        for entity in sample.entities
        if entity.category in _WRITTEN_LIKE_NOTHING_ELSE
        and "leak" not in rules(leak_problems, without(sample, entity))
    ]

    assert missed == []


def without(sample: Sample, entity: Entity) -> Sample:
    subjects = (
        replace(subject, entities=tuple(e for e in subject.entities if e.text != entity.text))
        for subject in sample.subjects
    )
    return replace(sample, subjects=tuple(subjects))
