from __future__ import annotations

import pytest

from pii_bench.datasets.check.consistency import RELATION_RULES, RULES, consistency_problems
from pii_bench.datasets.sample import Entity, Sample, Subject
from tests.datasets.check.samples import Facts, build, rules

PERSON: list[tuple[str, Facts, Facts]] = [
    # rule, violated, kept by the narrowest margin
    (
        "schooling-takes-years",
        {"23": "Age", "PhD in History": "Academic Degree"},
        {"24": "Age", "PhD in History": "Academic Degree"},
    ),
    (
        "schooling-takes-years",
        {"20": "Age", "master's degree": "Education Level"},
        {"21": "Age", "master's degree": "Education Level"},
    ),
    (
        "schooling-takes-years",
        {"19": "Age", "BSc in Geology": "Academic Degree"},
        {"20": "Age", "BSc in Geology": "Academic Degree"},
    ),
    (
        # Four years are 1461 days.
        "duration-fits-age",
        {"20": "Age", "1462 days": "Duration"},
        {"20": "Age", "1461 days": "Duration"},
    ),
    (
        "duration-fits-age",
        {"4": "Age", "1462 days": "Duration"},
        {"4": "Age", "1461 days": "Duration"},
    ),
    (
        "level-holds-degree",
        {"bachelor's level": "Education Level", "MA in History": "Academic Degree"},
        {"master's level": "Education Level", "MA in History": "Academic Degree"},
    ),
    (
        "licensed-post-needs-degree",
        {"heart surgeon": "Occupation", "secondary school": "Education Level"},
        {"tree surgeon": "Occupation", "secondary school": "Education Level"},
    ),
    (
        "licensed-post-needs-degree",
        {"dentist": "Occupation", "20": "Age"},
        {"dentist's assistant": "Occupation", "20": "Age"},
    ),
    (
        "month-can-be-paid",
        {"$2,000": "Monthly Income", "$2,501": "Monthly Expenses"},
        {"$2,000": "Monthly Income", "$2,500": "Monthly Expenses"},
    ),
    (
        "tax-is-part-of-pay",
        {"$2,000": "Monthly Income", "$12,001": "Tax Payment"},
        {"$2,000": "Monthly Income", "$12,000": "Tax Payment"},
    ),
    (
        "bonus-is-part-of-pay",
        {"$2,000": "Monthly Income", "$12,001": "Annual Bonus"},
        {"$2,000": "Monthly Income", "$12,000": "Annual Bonus"},
    ),
    (
        "loan-can-be-carried",
        {"$2,000": "Monthly Income", "$192,001": "Loan Amount"},
        {"$2,000": "Monthly Income", "$192,000": "Loan Amount"},
    ),
    (
        "loan-can-be-carried",
        {"$2,000": "Monthly Income", "$48,001": "Loan Amount", "9.99%": "Debt Ratio"},
        {"$2,000": "Monthly Income", "$48,001": "Loan Amount", "10.00%": "Debt Ratio"},
    ),
    (
        # 4 square metres: 14 times 4 is 56, 45 times 4 is 180.
        "body-is-possible",
        {"200 cm": "Height", "55 kg": "Weight"},
        {"200 cm": "Height", "56 kg": "Weight"},
    ),
    (
        "body-is-possible",
        {"200 cm": "Height", "181 kg": "Weight"},
        {"200 cm": "Height", "180 kg": "Weight"},
    ),
    (
        "orientation-fits-gender",
        {"trans man": "Gender", "lesbian": "Sexual Orientation"},
        {"trans woman": "Gender", "lesbian": "Sexual Orientation"},
    ),
]

PAIR: list[tuple[str, str, tuple[Facts, Facts], tuple[Facts, Facts]]] = [
    # rule, relation, violated, kept
    (
        "elder-is-older",
        "parent-child",
        ({"57": "Age"}, {"40": "Age"}),
        ({"58": "Age"}, {"40": "Age"}),
    ),
    (
        "elder-is-older",
        "grandparent-grandchild",
        ({"57": "Age"}, {"20": "Age"}),
        ({"58": "Age"}, {"20": "Age"}),
    ),
    ("elder-is-older", "siblings", ({"39": "Age"}, {"40": "Age"}), ({"41": "Age"}, {"40": "Age"})),
    (
        "kin-has-one-nationality",
        "siblings",
        ({"Czech": "Nationality"}, {"Kenyan": "Nationality"}),
        ({"Czech": "Nationality"}, {"Czech": "Nationality"}),
    ),
    (
        "senior-is-paid-as-much",
        "supervisor-report",
        ({"$2,000": "Monthly Income"}, {"$2,001": "Monthly Income"}),
        ({"$2,001": "Monthly Income"}, {"$2,000": "Monthly Income"}),
    ),
]


def telling(*people: Facts, relation: str | None = None) -> Sample:
    text = "; ".join(fact for facts in people for fact in facts)
    return build(text, *people, relation=relation)


@pytest.mark.parametrize(("rule", "violated", "kept"), PERSON)
def test_a_rule_about_one_person(rule: str, violated: Facts, kept: Facts) -> None:
    assert rules(consistency_problems, telling(violated)) == [rule]
    assert rules(consistency_problems, telling(kept)) == []


@pytest.mark.parametrize(("rule", "relation", "violated", "kept"), PAIR)
def test_a_rule_between_two_people(
    rule: str, relation: str, violated: tuple[Facts, Facts], kept: tuple[Facts, Facts]
) -> None:
    assert rules(consistency_problems, telling(*violated, relation=relation)) == [rule]
    assert rules(consistency_problems, telling(*kept, relation=relation)) == []
    assert rules(consistency_problems, telling(*violated, relation="friends")) == []
    assert rules(consistency_problems, telling(*violated)) == []


def test_every_rule_is_violated_above() -> None:
    named = {rule.__name__.replace("_", "-") for rule in (*RULES, *RELATION_RULES)}

    assert {rule for rule, *_ in PERSON} | {rule for rule, *_ in PAIR} == named


def test_a_shared_span_has_one_meaning() -> None:
    company, charity = (
        Entity("Quiet Lines", "ORG", category, ((0, 11),)) for category in ("Company Name", "NGO")
    )
    sample = Sample(
        "s1", "Quiet Lines", None, (Subject("A", (company,)), Subject("B", (charity,))), ()
    )

    (problem,) = consistency_problems(sample)
    assert problem.rule == "shared-span-has-one-meaning"
    assert problem.reason == "'Quiet Lines' is Company Name and NGO on one span"


def test_amounts_of_two_currencies_do_not_compare() -> None:
    month = telling({"$2,000": "Monthly Income", "SEK 20,000": "Monthly Expenses"})
    pair = telling(
        {"$2,000": "Monthly Income"},
        {"SEK 20,000": "Monthly Income"},
        relation="supervisor-report",
    )

    assert rules(consistency_problems, month) == []
    assert rules(consistency_problems, pair) == []


def test_a_reason_names_the_subject_and_the_values() -> None:
    (problem,) = consistency_problems(telling({}, {"19": "Age", "PhD": "Academic Degree"}))

    assert problem.reason == "subject B: 'PhD' at 19 years"
