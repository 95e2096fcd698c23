from __future__ import annotations

import re
from random import Random

import pytest

from pii_bench.construction.people import Fact, Profile
from pii_bench.construction.pools import City, Country, Occupation, Pools, Schooling
from pii_bench.construction.rules import (
    RELATION_RULES,
    RELATIONS,
    RULES,
    Relation,
    conflicts,
    number,
    relation_conflicts,
)
from pii_bench.construction.values import Draw
from pii_bench.taxonomy import TYPE_OF_CATEGORY, PiiType

LUND = City("Lund", ("Kungshuset",), ("Lund University",))
SWEDEN = Country(
    name="Sweden",
    nationality="Swedish",
    phone="+46",
    currency="SEK {}",
    per_usd=10.0,
    locales=("sv_SE",),
    agencies=("Skatteverket", "Land Registry"),
    parties=("Centre Party",),
    streets=("Storgatan {n}",),
    cities={"Lund": LUND},
)
POOLS = Pools(
    split="test",
    countries={"Sweden": SWEDEN},
    cultures={},
    occupations={
        "porter": Occupation("porter", education=1, low=1000, high=2000, age=18),
        "surgeon": Occupation("surgeon", education=5, low=8000, high=12000, age=30),
    },
    education_levels={
        "secondary school": Schooling("secondary school", rank=1, age=18),
        "bachelor's degree": Schooling("bachelor's degree", rank=3, age=21),
        "doctorate": Schooling("doctorate", rank=5, age=26),
    },
    degrees={"BSc in Geology": Schooling("BSc in Geology", rank=3, age=21)},
    genders={"woman": "she", "man": "he"},
    lists={},
)

# By rule: other facts, a fact that conflicts with them, and one that just does not.
ROWS_OF_RULE: dict[str, list[tuple[str, str, str]]] = {
    "schooling_takes_years": [
        ("Education Level = doctorate", "Age = 25", "Age = 26"),
        ("Academic Degree = BSc in Geology", "Age = 20", "Age = 21"),
    ],
    "working_life_begins_at_sixteen": [
        # Four years are 1461 days.
        ("Age = 20", "Duration: in-post = 1462 days", "Duration: in-post = 1461 days"),
        ("Age = 20", "Duration: in-post = 3000 days", "Duration: waiting = 3000 days"),
        # The age in the year of the start is 2026 - 2022 = 4 years less: 16 or, in 2023, 17.
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
        # A porter earns 1,000 to 2,000 dollars, and a dollar is ten crowns: 5,000 is half of the
        # least, and 40,000 is twice the most.
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
    # The pronoun is "she".
    "gender_and_orientation_agree": [("", "Gender = man", "Gender = woman")],
}
RULE_NAMED = {rule.__name__: rule for rule in RULES}
ROWS = [(rule, *row) for rule, rows in ROWS_OF_RULE.items() for row in rows]


def person(*facts: str, subject: str = "A", pronoun: str = "she") -> Profile:
    """Return a person in Lund with facts such as "Age = 25; Duration: in-post = 3 days"."""
    draw = Draw(Random(1), POOLS, SWEDEN, LUND, pronoun, "japanese", 3000.0)
    own = []
    for fact in filter(None, "; ".join(facts).split("; ")):
        name, _, value = fact.partition(" = ")
        category, _, facet = name.partition(": ")
        own.append(Fact(category, facet, value))
    return Profile(subject, tuple(own), draw)


@pytest.mark.parametrize(("rule", "others", "violating", "valid"), ROWS)
def test_a_rule_finds_a_conflict_and_allows_the_limit(
    rule: str, others: str, violating: str, valid: str
) -> None:
    category = re.split(": | = ", violating)[0]

    assert list(RULE_NAMED[rule](person(others, violating))) == [category]
    assert conflicts(person(others, violating)) == [("A", category)]
    assert not conflicts(person(others, valid))
    assert not conflicts(person(others))
    if others:
        assert not conflicts(person(violating))


def test_a_surgeon_has_a_doctorate() -> None:
    assert not conflicts(person("Occupation = surgeon; Education Level = doctorate"))


def test_a_man_is_not_called_lesbian() -> None:
    fact = "Sexual Orientation = lesbian"
    assert conflicts(person(fact, pronoun="he")) == [("A", "Sexual Orientation")]
    assert not conflicts(person(fact, pronoun="she"))


PARENT, SENIOR, COLLEAGUES, LANDLORD = (
    RELATIONS[name]
    for name in ("parent-child", "supervisor-report", "colleagues", "landlord-tenant")
)

RELATION_RULE_NAMED = {rule.__name__: rule for rule in RELATION_RULES}
# Rule, relation, subject and category that conflict, values of A and B that conflict, and valid
# values of A and B.
RELATION_ROWS: list[tuple[str, Relation, str, tuple[str, str], tuple[str, str]]] = [
    ("age_gap_fits_relation", PARENT, "A Age", ("37", "20"), ("38", "20")),
    ("age_gap_fits_relation", PARENT, "B Age", ("69", "20"), ("68", "20")),
    ("age_gap_fits_relation", PARENT, "A Age", ("37", "38"), ("56", "38")),
    ("other_age_is_possible", PARENT, "A Age", ("35", "17"), ("36", "18")),
    ("other_age_is_possible", PARENT, "B Age", ("93", "75"), ("92", "74")),
    ("kin_have_one_nationality", PARENT, "B Nationality", ("Thai", "Omani"), ("Thai", "Thai")),
    ("binding_facts_are_equal", COLLEAGUES, "B Company Name: employer", ("X", "Y"), ("X", "X")),
    ("senior_is_not_paid_less", SENIOR, "B Monthly Income", ("$9,999", "$10,000"), ("$9", "$9")),
]


def pair_with(category: str, values: tuple[str, str]) -> tuple[Profile, Profile]:
    one, other = (f"{category} = {value}" for value in values)
    return person(one), person(other, subject="B")


@pytest.mark.parametrize(("rule", "relation", "conflict", "violating", "valid"), RELATION_ROWS)
def test_a_relation_rule_finds_a_conflict_and_allows_the_limit(
    rule: str,
    relation: Relation,
    conflict: str,
    violating: tuple[str, str],
    valid: tuple[str, str],
) -> None:
    subject, category = conflict.split(" ", 1)
    expected = [(subject, category.split(":")[0])]

    assert list(RELATION_RULE_NAMED[rule](*pair_with(category, violating), relation)) == expected
    assert relation_conflicts(*pair_with(category, violating), relation) == expected
    assert not relation_conflicts(*pair_with(category, valid), relation)
    assert not relation_conflicts(*pair_with(category, violating), LANDLORD)


def test_the_tables_have_every_rule() -> None:
    assert RULE_NAMED.keys() == ROWS_OF_RULE.keys()
    assert RELATION_RULE_NAMED.keys() == {row[0] for row in RELATION_ROWS}


def test_a_value_of_one_person_alone_is_no_conflict() -> None:
    for rule, relation, conflict, values, _ in RELATION_ROWS:
        # This rule is on the age of one person.
        if rule == "other_age_is_possible":
            continue
        category = conflict.split(" ", 1)[1]
        a, b = person(f"{category} = {values[0]}"), person(subject="B")
        assert not relation_conflicts(a, b, relation)


def test_colleagues_may_have_different_former_employers() -> None:
    a = person("Company Name: employer = Hopfenhof")
    b = person("Company Name: former = Tannwerk", subject="B")
    assert not relation_conflicts(a, b, COLLEAGUES)


@pytest.mark.parametrize(
    ("a", "b", "conflict"),
    [("Age = 36", "", ""), ("Age = 35", "", "A"), ("", "Age = 74", ""), ("", "Age = 75", "B")],
)
def test_one_age_allows_a_possible_age_of_the_other_person(a: str, b: str, conflict: str) -> None:
    found = relation_conflicts(person(a), person(b, subject="B"), PARENT)
    assert found == ([(conflict, "Age")] if conflict else [])


@pytest.mark.parametrize(
    ("text", "expected"),
    [("41 days", 41), ("6.85%", 6.85), ("Rp 1,200,000", 1_200_000), ("₹1,20,000", 120_000)],
)
def test_numbers_are_parsed(text: str, expected: float) -> None:
    assert number(text) == expected


@pytest.mark.parametrize("relation", RELATIONS.values(), ids=RELATIONS)
def test_relations_allow_ages_of_adults_and_share_no_name(relation: Relation) -> None:
    # Adults of 18 to 83 years.
    assert relation.least_gap < min(relation.greatest_gap, 83 - 18)
    assert all(TYPE_OF_CATEGORY[name] is not PiiType.PER for name, _ in relation.shared)
