from __future__ import annotations

import pytest

from pii_bench.datasets.check.consistency import RELATION_RULES, RULES, consistency_problems
from pii_bench.datasets.sample import Entity, Sample, Subject
from tests.datasets.check.samples import Facts, build, rules

# By rule: facts that stay, a fact that breaks it, and one that keeps it by the smallest margin.
PERSON: dict[str, list[tuple[str, str, str]]] = {
    "schooling-takes-years": [
        ("Academic Degree = PhD in History", "Age = 23", "Age = 24"),
        ("Education Level = master's degree", "Age = 20", "Age = 21"),
        ("Academic Degree = BSc in Geology", "Age = 19", "Age = 20"),
    ],
    "duration-fits-age": [
        # Four years are 1461 days.
        ("Age = 20", "Duration = 1462 days", "Duration = 1461 days"),
        ("Age = 4", "Duration = 1462 days", "Duration = 1461 days"),
    ],
    "level-holds-degree": [
        (
            "Academic Degree = MA in History",
            "Education Level = bachelor's level",
            "Education Level = master's level",
        ),
    ],
    "licensed-post-needs-degree": [
        (
            "Education Level = secondary school",
            "Occupation = heart surgeon",
            "Occupation = tree surgeon",
        ),
        ("Age = 20", "Occupation = dentist", "Occupation = dentist's assistant"),
    ],
    "month-can-be-paid": [
        ("Monthly Income = $2,000", "Monthly Expenses = $2,501", "Monthly Expenses = $2,500"),
    ],
    "tax-is-part-of-pay": [
        ("Monthly Income = $2,000", "Tax Payment = $12,001", "Tax Payment = $12,000"),
    ],
    "bonus-is-part-of-pay": [
        ("Monthly Income = $2,000", "Annual Bonus = $12,001", "Annual Bonus = $12,000"),
    ],
    "loan-can-be-carried": [
        ("Monthly Income = $2,000", "Loan Amount = $192,001", "Loan Amount = $192,000"),
        (
            "Monthly Income = $2,000; Loan Amount = $48,001",
            "Debt Ratio = 9.99%",
            "Debt Ratio = 10.00%",
        ),
    ],
    "body-is-possible": [
        # 4 square metres: 14 times 4 is 56, 45 times 4 is 180.
        ("Height = 200 cm", "Weight = 55 kg", "Weight = 56 kg"),
        ("Height = 200 cm", "Weight = 181 kg", "Weight = 180 kg"),
    ],
    "orientation-fits-gender": [
        ("Sexual Orientation = lesbian", "Gender = trans man", "Gender = trans woman"),
    ],
}

# By rule: relation, category, values of both people that break it, and values that keep it.
PAIR: dict[str, list[tuple[str, str, tuple[str, str], tuple[str, str]]]] = {
    "elder-is-older": [
        ("parent-child", "Age", ("57", "40"), ("58", "40")),
        ("grandparent-grandchild", "Age", ("57", "20"), ("58", "20")),
        ("siblings", "Age", ("39", "40"), ("41", "40")),
    ],
    "kin-has-one-nationality": [
        ("siblings", "Nationality", ("Czech", "Kenyan"), ("Czech", "Czech")),
    ],
    "senior-is-paid-as-much": [
        ("supervisor-report", "Monthly Income", ("$2,000", "$2,001"), ("$2,001", "$2,000")),
    ],
}


def facts(*descriptions: str) -> Facts:
    """Parse facts such as "Age = 23; Gender = man"."""
    pairs = (fact.partition(" = ") for text in descriptions for fact in text.split("; "))
    return {value: category for category, _, value in pairs}


def sample_about(*people: Facts, relation: str | None = None) -> Sample:
    text = "; ".join(fact for facts in people for fact in facts)
    return build(text, *people, relation=relation)


@pytest.mark.parametrize(
    ("rule", "stays", "broken", "kept"),
    [(rule, *row) for rule, rows in PERSON.items() for row in rows],
)
def test_rules_about_one_person(rule: str, stays: str, broken: str, kept: str) -> None:
    assert rules(consistency_problems, sample_about(facts(stays, broken))) == [rule]
    assert rules(consistency_problems, sample_about(facts(stays, kept))) == []


@pytest.mark.parametrize(
    ("rule", "relation", "category", "broken", "kept"),
    [(rule, *row) for rule, rows in PAIR.items() for row in rows],
)
def test_rules_about_two_people(
    rule: str, relation: str, category: str, broken: tuple[str, str], kept: tuple[str, str]
) -> None:
    def problems(values: tuple[str, str], relation: str | None) -> list[str]:
        people = ({value: category} for value in values)
        return rules(consistency_problems, sample_about(*people, relation=relation))

    assert problems(broken, relation) == [rule]
    assert problems(kept, relation) == []
    assert problems(broken, "friends") == []
    assert problems(broken, None) == []


def test_every_rule_is_tested() -> None:
    named = {rule.__name__.replace("_", "-") for rule in (*RULES, *RELATION_RULES)}

    assert PERSON.keys() | PAIR.keys() == named


def test_two_meanings_of_a_shared_span_are_a_problem() -> None:
    company, charity = (
        Entity("Quiet Lines", "ORG", category, ((0, 11),)) for category in ("Company Name", "NGO")
    )
    sample = Sample(
        "s1", "Quiet Lines", None, (Subject("A", (company,)), Subject("B", (charity,))), ()
    )

    (problem,) = consistency_problems(sample)
    assert problem.rule == "shared-span-has-one-meaning"
    assert problem.reason == "'Quiet Lines' is Company Name and NGO on one span"


def test_amounts_in_two_currencies_are_not_compared() -> None:
    month = sample_about({"$2,000": "Monthly Income", "SEK 20,000": "Monthly Expenses"})
    pair = sample_about(
        {"$2,000": "Monthly Income"},
        {"SEK 20,000": "Monthly Income"},
        relation="supervisor-report",
    )

    assert rules(consistency_problems, month) == []
    assert rules(consistency_problems, pair) == []


def test_reasons_name_the_subject_and_the_values() -> None:
    (problem,) = consistency_problems(sample_about({}, {"19": "Age", "PhD": "Academic Degree"}))

    assert problem.reason == "subject B: 'PhD' at 19 years"
