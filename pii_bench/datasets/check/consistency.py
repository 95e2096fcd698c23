"""Checks that the facts about the people of a text do not contradict each other.

The rules use only the values and are independent of the rules of the construction. A rule applies
only if both values are present and can be parsed; amounts are compared in one currency.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pii_bench.datasets.check.text import Problem, verbatim_spans
from pii_bench.datasets.value_formats import (
    Rank,
    parse_amount,
    parse_days,
    parse_kilograms,
    parse_metres,
    parse_percentage,
    parse_rank,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pii_bench.datasets.sample import Entity, Sample, Subject
    from pii_bench.scorer.locate import Span

    Facts = Mapping[str, str]
    """Text of a person's entities by category."""

_LEAST_AGE: Final = {Rank.BELOW_DEGREE: 0, Rank.BACHELOR: 20, Rank.MASTER: 21, Rank.DOCTOR: 24}
_DAYS_A_YEAR: Final = 365.25
# Occupations that require a degree by law. The last word decides, so that "pharmacist's
# assistant" is none.
_LICENSED: Final = re.compile(
    r"(?:.*\W)?(?<!tree )(?:surgeon|physician|psychiatrist|pa?ediatrician|ana?esthetist|dentist"
    r"|veterinarian|pharmacist|lawyer|solicitor|barrister|attorney)",
    re.IGNORECASE,
)
_MALE: Final = frozenset({"man", "male", "boy", "trans man"})

_LEAST_GAP: Final = {"parent-child": 18, "grandparent-grandchild": 38, "siblings": 0, "relative": 0}
_KIN: Final = frozenset({"parent-child", "grandparent-grandchild", "siblings"})
_PAID_BY_RANK: Final = frozenset({"supervisor-report", "mentor-apprentice"})


def consistency_problems(sample: Sample) -> Iterator[Problem]:
    """Check all rules, each a function of this module that is named like the rule.

    Rules about two people need `meta.relation`; the elder or senior one is the first subject.
    """
    for subject in sample.subjects:
        for rule in RULES:
            for reason in rule(_facts(subject)):
                yield Problem(sample.id, _rule_name(rule), f"subject {subject.id}: {reason}")
    relation = sample.meta.get("relation")
    if isinstance(relation, str) and len(sample.subjects) == 2:
        first, second = (_facts(subject) for subject in sample.subjects)
        for between in RELATION_RULES:
            for reason in between(relation, first, second):
                yield Problem(sample.id, _rule_name(between), f"{relation}: {reason}")
    for reason in shared_span_has_one_meaning(sample):
        yield Problem(sample.id, _rule_name(shared_span_has_one_meaning), reason)


def schooling_takes_years(facts: Facts) -> Iterator[str]:
    """A bachelor's degree requires age 20, a master's 21, a doctorate 24."""
    age = _number(facts, "Age")
    for category in ("Education Level", "Academic Degree"):
        rank = parse_rank(facts.get(category, ""))
        if age is not None and rank is not None and age < _LEAST_AGE[rank]:
            yield f"{facts[category]!r} at {age:.0f} years"


def duration_fits_age(facts: Facts) -> Iterator[str]:
    """A duration is not longer than a life, or for adults than the years since 16."""
    age, days = _number(facts, "Age"), parse_days(facts.get("Duration", ""))
    if age is None or days is None:
        return
    if days / _DAYS_A_YEAR > (age - 16 if age >= 18 else age):
        yield f"{facts['Duration']!r} at {age:.0f} years"


def level_holds_degree(facts: Facts) -> Iterator[str]:
    """The education level is not below the academic degree."""
    level, degree = (
        parse_rank(facts.get(category, "")) for category in ("Education Level", "Academic Degree")
    )
    if level is not None and degree is not None and level < degree:
        yield f"{facts['Education Level']!r} with {facts['Academic Degree']!r}"


def licensed_post_needs_degree(facts: Facts) -> Iterator[str]:
    """Treating or representing others requires a degree and age 21."""
    occupation, age = facts.get("Occupation", ""), _number(facts, "Age")
    if not _LICENSED.fullmatch(occupation):
        return
    level = facts.get("Education Level", "")
    if parse_rank(level) is Rank.BELOW_DEGREE:
        yield f"{occupation!r} with {level!r}"
    if age is not None and age < 21:
        yield f"{occupation!r} at {age:.0f} years"


def month_can_be_paid(facts: Facts) -> Iterator[str]:
    """Monthly expenses are at most 1.25 times the monthly income."""
    yield from _at_most(facts, "Monthly Expenses", 1.25)


def tax_is_part_of_pay(facts: Facts) -> Iterator[str]:
    """A tax payment is at most six monthly incomes."""
    yield from _at_most(facts, "Tax Payment", 6)


def bonus_is_part_of_pay(facts: Facts) -> Iterator[str]:
    """An annual bonus is at most six monthly incomes."""
    yield from _at_most(facts, "Annual Bonus", 6)


def loan_can_be_carried(facts: Facts) -> Iterator[str]:
    """A loan is at most eight annual incomes, or two if the debt ratio is below 10 %."""
    ratio = parse_percentage(facts.get("Debt Ratio", ""))
    years = 2 if ratio is not None and ratio < 10 else 8
    yield from _at_most(facts, "Loan Amount", years * 12)


def body_is_possible(facts: Facts) -> Iterator[str]:
    """The body mass index (kilograms by square metre) is between 14 and 45."""
    metres = parse_metres(facts.get("Height", ""))
    kilograms = parse_kilograms(facts.get("Weight", ""))
    if metres and kilograms and not 14 <= kilograms / metres**2 <= 45:
        yield f"{facts['Height']} and {facts['Weight']}"


def orientation_fits_gender(facts: Facts) -> Iterator[str]:
    """A man is not "lesbian"."""
    gender, orientation = facts.get("Gender", ""), facts.get("Sexual Orientation", "")
    if gender.lower() in _MALE and orientation.lower() == "lesbian":
        yield f"{orientation!r} with {gender!r}"


def elder_is_older(relation: str, elder: Facts, younger: Facts) -> Iterator[str]:
    """A parent is at least 18 years older, a grandparent 38."""
    age, other_age = _number(elder, "Age"), _number(younger, "Age")
    least = _LEAST_GAP.get(relation)
    if least is None or age is None or other_age is None:
        return
    if age - other_age < least:
        yield f"{age:.0f} and {other_age:.0f} years, not {least} apart"


def kin_has_one_nationality(relation: str, elder: Facts, younger: Facts) -> Iterator[str]:
    """Parents, grandparents and siblings share a nationality."""
    one, other = elder.get("Nationality"), younger.get("Nationality")
    if relation in _KIN and one and other and one != other:
        yield f"{one!r} and {other!r}"


def senior_is_paid_as_much(relation: str, senior: Facts, junior: Facts) -> Iterator[str]:
    """A supervisor or mentor earns at least as much as the other."""
    one, other = (parse_amount(facts.get("Monthly Income", "")) for facts in (senior, junior))
    if relation not in _PAID_BY_RANK or one is None or other is None:
        return
    if one.currency == other.currency and one.value < other.value:
        yield f"{senior['Monthly Income']} over {junior['Monthly Income']}"


def shared_span_has_one_meaning(sample: Sample) -> Iterator[str]:
    """Entities of two subjects on one span have the same type and category."""
    # The first subject and entity of each text and span.
    first: dict[tuple[str, Span], tuple[str, Entity]] = {}
    reported: set[str] = set()
    for subject in sample.subjects:
        for entity in subject.entities:
            for span in verbatim_spans(entity, sample.description):
                owner, other = first.setdefault((entity.text, span), (subject.id, entity))
                same = (other.type, other.category) == (entity.type, entity.category)
                if owner == subject.id or same:
                    continue
                meanings = f"{other.category or other.type} and {entity.category or entity.type}"
                reason = f"{entity.text!r} is {meanings} on one span"
                if reason not in reported:
                    reported.add(reason)
                    yield reason


RULES: Final[tuple[Callable[[Facts], Iterator[str]], ...]] = (
    schooling_takes_years,
    duration_fits_age,
    level_holds_degree,
    licensed_post_needs_degree,
    month_can_be_paid,
    tax_is_part_of_pay,
    bonus_is_part_of_pay,
    loan_can_be_carried,
    body_is_possible,
    orientation_fits_gender,
)

RELATION_RULES: Final[tuple[Callable[[str, Facts, Facts], Iterator[str]], ...]] = (
    elder_is_older,
    kin_has_one_nationality,
    senior_is_paid_as_much,
)


def _facts(subject: Subject) -> Facts:
    return {entity.category: entity.text for entity in subject.entities if entity.category}


def _rule_name(rule: Callable[..., Iterator[str]]) -> str:
    return rule.__name__.replace("_", "-")


def _number(facts: Facts, category: str) -> float | None:
    text = facts.get(category, "")
    return float(text) if text.isdecimal() else None


def _at_most(facts: Facts, category: str, months: float) -> Iterator[str]:
    income = parse_amount(facts.get("Monthly Income", ""))
    amount = parse_amount(facts.get(category, ""))
    if income is None or amount is None or income.currency != amount.currency:
        return
    if amount.value > months * income.value:
        yield f"{category} {facts[category]} with {facts['Monthly Income']} a month"
