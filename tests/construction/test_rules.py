from __future__ import annotations

import pytest

from pii_bench.construction.rules import (
    RELATION_RULES,
    RELATIONS,
    RULES,
    Conflict,
    Relation,
    conflicts,
    kilograms,
    metres,
    number,
    relation_conflicts,
)
from pii_bench.taxonomy import TYPE_OF_CATEGORY, PiiType
from tests.construction.world import person

Facts = tuple[tuple[str, str], ...]

TABLE: list[tuple[str, str, Facts, Facts]] = [
    # rule, what is to change, violated, kept by the narrowest margin
    (
        "schooling_takes_years",
        "Age",
        (("Age", "25"), ("Education Level", "doctorate")),
        (("Age", "26"), ("Education Level", "doctorate")),
    ),
    (
        "schooling_takes_years",
        "Age",
        (("Age", "20"), ("Academic Degree", "BSc in Geology")),
        (("Age", "21"), ("Academic Degree", "BSc in Geology")),
    ),
    (
        # Four years are 1461 days.
        "working_life_begins_at_sixteen",
        "Duration",
        (("Age", "20"), ("Duration: in-post", "1462 days")),
        (("Age", "20"), ("Duration: in-post", "1461 days")),
    ),
    (
        "working_life_begins_at_sixteen",
        "Duration",
        (("Age", "20"), ("Duration: in-post", "3000 days")),
        (("Age", "20"), ("Duration: waiting", "3000 days")),
    ),
    (
        # Seventeen in the year of the start, whatever the birthday.
        "working_life_begins_at_sixteen",
        "Date",
        (("Age", "20"), ("Date: job-start", "2022-12-31")),
        (("Age", "20"), ("Date: job-start", "2023-01-01")),
    ),
    (
        "working_life_begins_at_sixteen",
        "Date",
        (("Age", "20"), ("Date: course-end", "2010-06-01")),
        (("Age", "20"), ("Date: trip", "2010-06-01")),
    ),
    (
        "career_stage_fits_age",
        "Age",
        (("Age", "29"), ("Occupation", "surgeon")),
        (("Age", "30"), ("Occupation", "surgeon")),
    ),
    (
        "post_and_start_agree",
        "Duration",
        (("Duration: in-post", "90 days"), ("Date: job-start", "2020-02-02")),
        (("Duration: in-post", "90 days"), ("Date: trip", "2020-02-02")),
    ),
    (
        "occupation_has_its_schooling",
        "Occupation",
        (("Occupation", "surgeon"), ("Education Level", "bachelor's degree")),
        (("Occupation", "surgeon"), ("Education Level", "doctorate")),
    ),
    (
        "occupation_has_its_schooling",
        "Occupation",
        (("Occupation", "surgeon"), ("Academic Degree", "BSc in Geology")),
        (("Occupation", "porter"), ("Academic Degree", "BSc in Geology")),
    ),
    (
        "level_and_degree_agree",
        "Education Level",
        (("Education Level", "doctorate"), ("Academic Degree", "BSc in Geology")),
        (("Education Level", "bachelor's degree"), ("Academic Degree", "BSc in Geology")),
    ),
    (
        # A porter earns 1,000 to 2,000 dollars, ten crowns each: half of the least.
        "pay_fits_occupation",
        "Monthly Income",
        (("Occupation", "porter"), ("Monthly Income", "SEK 4,999")),
        (("Occupation", "porter"), ("Monthly Income", "SEK 5,000")),
    ),
    (
        "pay_fits_occupation",
        "Monthly Income",
        (("Occupation", "porter"), ("Monthly Income", "SEK 40,001")),
        (("Occupation", "porter"), ("Monthly Income", "SEK 40,000")),
    ),
    (
        "home_is_one_place",
        "Landmark",
        (("Landmark: near-home", "Big Ben"),),
        (("Landmark: near-home", "Kungshuset"),),
    ),
    (
        "home_is_one_place",
        "Government Agency",
        (("Government Agency: case", "Home Office"),),
        (("Government Agency: case", "Land Registry"),),
    ),
    (
        "home_is_one_place",
        "Political Affiliation",
        (("Political Affiliation", "Green Party"),),
        (("Political Affiliation", "Centre Party"),),
    ),
    (
        "home_is_one_place",
        "City/Region",
        (("City/Region: home", "Pune"),),
        (("City/Region: origin", "Pune"),),
    ),
    (
        "home_is_one_place",
        "Educational Institution",
        (("Educational Institution: current", "Pima Community College"),),
        (("Educational Institution: alumni", "Pima Community College"),),
    ),
    (
        "home_is_one_place",
        "Street Address",
        (("Street Address: home", "14 Abbot Road"),),
        (("Street Address: home", "Storgatan 14"),),
    ),
    (
        "month_can_be_paid",
        "Monthly Expenses",
        (("Monthly Income", "SEK 20,000"), ("Monthly Expenses", "SEK 25,001")),
        (("Monthly Income", "SEK 20,000"), ("Monthly Expenses", "SEK 25,000")),
    ),
    (
        "tax_and_bonus_below_a_years_pay",
        "Tax Payment",
        (("Monthly Income", "SEK 20,000"), ("Tax Payment", "SEK 120,001")),
        (("Monthly Income", "SEK 20,000"), ("Tax Payment", "SEK 120,000")),
    ),
    (
        "tax_and_bonus_below_a_years_pay",
        "Annual Bonus",
        (("Monthly Income", "SEK 20,000"), ("Annual Bonus", "SEK 120,001")),
        (("Monthly Income", "SEK 20,000"), ("Annual Bonus", "SEK 120,000")),
    ),
    (
        # Eight years are 96 months.
        "loan_can_be_carried",
        "Loan Amount",
        (("Monthly Income", "SEK 10,000"), ("Loan Amount", "SEK 960,001")),
        (("Monthly Income", "SEK 10,000"), ("Loan Amount", "SEK 960,000")),
    ),
    (
        # Two years are 24.
        "loan_can_be_carried",
        "Loan Amount",
        (
            ("Monthly Income", "SEK 10,000"),
            ("Loan Amount", "SEK 240,001"),
            ("Debt Ratio", "9.99%"),
        ),
        (
            ("Monthly Income", "SEK 10,000"),
            ("Loan Amount", "SEK 240,001"),
            ("Debt Ratio", "10.00%"),
        ),
    ),
    (
        # Four square metres: 64 kg is an index of 16.
        "body_is_possible",
        "Weight",
        (("Height", "200 cm"), ("Weight", "63 kg")),
        (("Height", "200 cm"), ("Weight", "64 kg")),
    ),
    (
        "body_is_possible",
        "Weight",
        (("Height", "200 cm"), ("Weight", "169 kg")),
        (("Height", "200 cm"), ("Weight", "168 kg")),
    ),
    (
        "gender_and_orientation_agree",
        "Gender",
        (("Gender", "man"),),  # of whom the text says "she"
        (("Gender", "woman"),),
    ),
]


@pytest.mark.parametrize(("rule", "category", "violated", "kept"), TABLE)
def test_a_rule_finds_what_conflicts_and_nothing_just_below(
    rule: str, category: str, violated: Facts, kept: Facts
) -> None:
    assert Conflict("A", category, rule) in conflicts(person(*violated))
    assert not conflicts(person(*kept))


def test_lesbian_is_not_said_of_a_man() -> None:
    facts = ("Sexual Orientation", "lesbian")
    assert conflicts(person(facts, pronoun="he")) == [
        Conflict("A", "Sexual Orientation", "gender_and_orientation_agree")
    ]
    assert not conflicts(person(facts, pronoun="she"))


def test_without_the_other_value_nothing_conflicts() -> None:
    for _, _, violated, _ in TABLE:
        if len(violated) > 1:
            for fact in violated:
                assert not conflicts(person(fact))


def test_every_rule_stands_in_the_table() -> None:
    assert {rule.__name__ for rule in RULES} == {row[0] for row in TABLE}


PARENT, SENIOR, COLLEAGUES, LANDLORD = (
    RELATIONS[name]
    for name in ("parent-child", "supervisor-report", "colleagues", "landlord-tenant")
)

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
        ("Swedish", "Kenyan"),
        ("Kenyan", "Kenyan"),
    ),
    (
        "what_binds_them_is_one",
        COLLEAGUES,
        "B Company Name: employer",
        ("Hopfenhof", "Tannwerk"),
        ("Hopfenhof", "Hopfenhof"),
    ),
    (
        "senior_is_not_paid_less",
        SENIOR,
        "B Monthly Income",
        ("SEK 9,999", "SEK 10,000"),
        ("SEK 10,000", "SEK 10,000"),
    ),
]


@pytest.mark.parametrize(("rule", "relation", "changed", "violated", "kept"), BETWEEN)
def test_a_rule_between_two_finds_what_conflicts(
    rule: str, relation: Relation, changed: str, violated: tuple[str, str], kept: tuple[str, str]
) -> None:
    subject, category = changed.split(" ", 1)

    def found(values: tuple[str, str], between: Relation) -> list[Conflict]:
        a, b = (
            person((category, value), subject=name)
            for name, value in zip("AB", values, strict=True)
        )
        return relation_conflicts(a, b, between)

    assert found(violated, relation) == [Conflict(subject, category.split(":")[0], rule)]
    assert not found(kept, relation)
    assert not found(violated, LANDLORD)


def test_only_what_binds_must_be_one() -> None:
    a = person(("Company Name: employer", "Hopfenhof"))
    b = person(("Company Name: former", "Tannwerk"), subject="B")
    assert not relation_conflicts(a, b, COLLEAGUES)


def test_every_rule_between_two_stands_in_the_table() -> None:
    assert {rule.__name__ for rule in RELATION_RULES} == {row[0] for row in BETWEEN}


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
