from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from pii_bench.construction.rules import (
    RELATION_RULES,
    RELATIONS,
    RULES,
    Relation,
    conflicts,
    kilograms,
    metres,
    number,
    relation_conflicts,
)
from pii_bench.taxonomy import TYPE_OF_CATEGORY, PiiType
from tests.construction.world import person

if TYPE_CHECKING:
    from pii_bench.construction.people import Profile

# By rule: facts that stay, the fact that is to change, and how it is kept by the narrowest margin.
TABLE: dict[str, list[tuple[str, str, str]]] = {
    "schooling_takes_years": [
        ("Education Level = doctorate", "Age = 25", "Age = 26"),
        ("Academic Degree = BSc in Geology", "Age = 20", "Age = 21"),
    ],
    "working_life_begins_at_sixteen": [
        # Four years are 1461 days.
        ("Age = 20", "Duration: in-post = 1462 days", "Duration: in-post = 1461 days"),
        ("Age = 20", "Duration: in-post = 3000 days", "Duration: waiting = 3000 days"),
        # Seventeen in the year of the start, whatever the birthday.
        ("Age = 20", "Date: job-start = 2022-12-31", "Date: job-start = 2023-01-01"),
        ("Age = 20", "Date: course-end = 2010-06-01", "Date: trip = 2010-06-01"),
    ],
    "career_stage_fits_age": [("Occupation = surgeon", "Age = 29", "Age = 30")],
    "post_and_start_agree": [
        (
            "Date: job-start = 2020-02-02",
            "Duration: in-post = 9 days",
            "Duration: waiting = 9 days",
        ),
    ],
    "occupation_has_its_schooling": [
        ("Education Level = bachelor's degree", "Occupation = surgeon", "Occupation = porter"),
        ("Academic Degree = BSc in Geology", "Occupation = surgeon", "Occupation = porter"),
    ],
    "level_and_degree_agree": [
        (
            "Academic Degree = BSc in Geology",
            "Education Level = doctorate",
            "Education Level = bachelor's degree",
        ),
    ],
    "pay_fits_occupation": [
        # A porter earns 1,000 to 2,000 dollars, ten crowns each: from half to twice of it.
        ("Occupation = porter", "Monthly Income = SEK 4,999", "Monthly Income = SEK 5,000"),
        ("Occupation = porter", "Monthly Income = SEK 40,001", "Monthly Income = SEK 40,000"),
    ],
    "home_is_one_place": [
        ("", "Landmark: near-home = Big Ben", "Landmark: near-home = Kungshuset"),
        ("", "Government Agency: case = Home Office", "Government Agency: case = Land Registry"),
        ("", "Political Affiliation = Green Party", "Political Affiliation = Centre Party"),
        ("", "City/Region: home = Pune", "City/Region: origin = Pune"),
        ("", "Educational Institution: current = MIT", "Educational Institution: alumni = MIT"),
        ("", "Street Address: home = 14 Abbot Road", "Street Address: home = Storgatan 14"),
    ],
    "pay_covers_what_is_paid": [
        ("Monthly Income = $20,000", "Monthly Expenses = $25,001", "Monthly Expenses = $25,000"),
        ("Monthly Income = $20,000", "Tax Payment = $120,001", "Tax Payment = $120,000"),
        ("Monthly Income = $20,000", "Annual Bonus = $120,001", "Annual Bonus = $120,000"),
        # Eight years are 96 months, two years are 24.
        ("Monthly Income = $100", "Loan Amount = $9,601", "Loan Amount = $9,600"),
        (
            "Monthly Income = $100; Debt Ratio = 10.00%",
            "Loan Amount = $9,601",
            "Loan Amount = $9,600",
        ),
        (
            "Monthly Income = $100; Debt Ratio = 9.99%",
            "Loan Amount = $2,401",
            "Loan Amount = $2,400",
        ),
    ],
    "body_is_possible": [
        # Four square metres: 64 kg is an index of 16.
        ("Height = 200 cm", "Weight = 63 kg", "Weight = 64 kg"),
        ("Height = 200 cm", "Weight = 169 kg", "Weight = 168 kg"),
    ],
    # Of whom the text says "she".
    "gender_and_orientation_agree": [("", "Gender = man", "Gender = woman")],
}
NAMED = {rule.__name__: rule for rule in RULES}
ROWS = [(rule, *row) for rule, rows in TABLE.items() for row in rows]


def told(*facts: str) -> Profile:
    """A person of facts such as "Age = 25; Duration: in-post = 3 days"."""
    pairs = [fact.partition(" = ") for each in facts if each for fact in each.split("; ")]
    return person(*((name, value) for name, _, value in pairs))


@pytest.mark.parametrize(("rule", "stays", "violated", "kept"), ROWS)
def test_a_rule_finds_what_conflicts_and_nothing_just_below(
    rule: str, stays: str, violated: str, kept: str
) -> None:
    category = re.split(": | = ", violated)[0]

    assert category in NAMED[rule](told(stays, violated))
    assert ("A", category) in conflicts(told(stays, violated))
    assert not conflicts(told(stays, kept))
    # Without the other value nothing conflicts.
    assert not stays or not conflicts(told(violated))
    assert not conflicts(told(stays))


def test_a_surgeon_has_a_doctorate() -> None:
    assert not conflicts(told("Occupation = surgeon; Education Level = doctorate"))


def test_lesbian_is_not_said_of_a_man() -> None:
    facts = ("Sexual Orientation", "lesbian")
    assert conflicts(person(facts, pronoun="he")) == [("A", "Sexual Orientation")]
    assert not conflicts(person(facts, pronoun="she"))


def test_every_rule_stands_in_the_table() -> None:
    assert NAMED.keys() == TABLE.keys()


PARENT, SENIOR, COLLEAGUES, LANDLORD = (
    RELATIONS[name]
    for name in ("parent-child", "supervisor-report", "colleagues", "landlord-tenant")
)

NAMED_BETWEEN = {rule.__name__: rule for rule in RELATION_RULES}
BETWEEN: list[tuple[str, Relation, str, tuple[str, str], tuple[str, str]]] = [
    # rule, relation, category, values of A and B violated, kept
    ("relation_is_kept", PARENT, "A Age", ("37", "20"), ("38", "20")),
    ("relation_is_kept", PARENT, "B Age", ("69", "20"), ("68", "20")),
    ("relation_is_kept", PARENT, "A Age", ("37", "38"), ("56", "38")),
    ("a_generation_has_room", PARENT, "A Age", ("35", "17"), ("36", "18")),
    ("a_generation_has_room", PARENT, "B Age", ("93", "75"), ("92", "74")),
    (
        "kin_share_no_impossible_origin",
        PARENT,
        "B Nationality",
        ("Thai", "Omani"),
        ("Thai", "Thai"),
    ),
    ("what_binds_them_is_one", COLLEAGUES, "B Company Name: employer", ("X", "Y"), ("X", "X")),
    ("senior_is_not_paid_less", SENIOR, "B Monthly Income", ("$9,999", "$10,000"), ("$9", "$9")),
]


@pytest.mark.parametrize(("rule", "relation", "changed", "violated", "kept"), BETWEEN)
def test_a_rule_between_two_finds_what_conflicts(
    rule: str, relation: Relation, changed: str, violated: tuple[str, str], kept: tuple[str, str]
) -> None:
    subject, category = changed.split(" ", 1)

    def pair(values: tuple[str, str]) -> tuple[Profile, Profile]:
        return person((category, values[0])), person((category, values[1]), subject="B")

    found = NAMED_BETWEEN[rule](*pair(violated), relation)
    assert list(found) == [(subject, category.split(":")[0])]
    assert not relation_conflicts(*pair(kept), relation)
    assert not relation_conflicts(*pair(violated), LANDLORD)


def test_only_what_binds_must_be_one() -> None:
    a = person(("Company Name: employer", "Hopfenhof"))
    b = person(("Company Name: former", "Tannwerk"), subject="B")
    assert not relation_conflicts(a, b, COLLEAGUES)


def test_every_rule_between_two_stands_in_the_table() -> None:
    assert NAMED_BETWEEN.keys() == {row[0] for row in BETWEEN}


def test_between_two_a_value_that_is_not_told_conflicts_with_none() -> None:
    for rule, relation, changed, violated, _ in BETWEEN:
        if rule == "a_generation_has_room":
            continue
        category = changed.split(" ", 1)[1]
        told, silent = person((category, violated[0])), person(subject="B")
        assert not relation_conflicts(told, silent, relation)


def test_one_age_alone_leaves_room_for_the_other_generation() -> None:
    silent_child, silent_parent = person(subject="B"), person()

    assert not relation_conflicts(person(("Age", "36")), silent_child, PARENT)
    assert relation_conflicts(person(("Age", "35")), silent_child, PARENT)
    assert not relation_conflicts(silent_parent, person(("Age", "74"), subject="B"), PARENT)
    assert relation_conflicts(silent_parent, person(("Age", "75"), subject="B"), PARENT)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$2,180", 2180.0),
        ("41 days", 41.0),
        ("6.85%", 6.85),
        ("SEK 20,000", 20000.0),
        ("Rp 1,200,000", 1200000.0),
        ("₹1,20,000", 120000.0),
    ],
)
def test_numbers_are_read_out_of_values(text: str, expected: float) -> None:
    assert number(text) == expected


def test_bodies_are_read_in_both_systems() -> None:
    assert metres("180 cm") == 1.8
    assert metres("5'10\"") == pytest.approx(1.778)  # 70 inches of 0.0254 m
    assert kilograms("64 kg") == 64
    assert kilograms("150 lbs") == pytest.approx(68.03, abs=0.01)


@pytest.mark.parametrize("relation", RELATIONS.values(), ids=RELATIONS)
def test_ages_leave_room_and_names_are_never_shared(relation: Relation) -> None:
    # Adults of 18 to 83 years.
    assert relation.least_gap < min(relation.greatest_gap, 83 - 18)
    assert all(TYPE_OF_CATEGORY[name] is not PiiType.PER for name, _ in relation.shared)


def test_the_paper_s_relations() -> None:
    assert PARENT.least_gap == 18
    assert COLLEAGUES.shared == (("Company Name", "employer"),)
    assert RELATIONS["classmates"].shared == (("Educational Institution", "current"),)
    assert SENIOR.senior
