"""Whether what a text says of its people can be true together (benchmark: step 2).

Written from the values alone and apart from the rules of the construction. A rule applies
only where both values are there and can be read; amounts compare in one currency.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final

from pii_bench.datasets.check.text import Problem, spans_of
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
    """Text by category."""

_LEAST_AGE: Final = {Rank.BELOW_DEGREE: 0, Rank.BACHELOR: 20, Rank.MASTER: 21, Rank.DOCTOR: 24}
_DAYS_A_YEAR: Final = 365.25
# Posts that the law keeps for graduates. The last word decides: no "pharmacist's assistant".
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
    """What cannot be true together, one rule a function of this module.

    Rules between two people need `meta.relation`; the elder or senior one is first.
    """
    for subject in sample.subjects:
        for rule in RULES:
            for reason in rule(_facts(subject)):
                yield Problem(sample.id, _name(rule), f"subject {subject.id}: {reason}")
    relation = sample.meta.get("relation")
    if isinstance(relation, str) and len(sample.subjects) == 2:
        first, second = (_facts(subject) for subject in sample.subjects)
        for between in RELATION_RULES:
            for reason in between(relation, first, second):
                yield Problem(sample.id, _name(between), f"{relation}: {reason}")
    for reason in shared_span_has_one_meaning(sample):
        yield Problem(sample.id, _name(shared_span_has_one_meaning), reason)


def schooling_takes_years(facts: Facts) -> Iterator[str]:
    """Temporal: a bachelor's degree from 20, a master's from 21, a doctorate from 24."""
    age = _number(facts, "Age")
    for category in ("Education Level", "Academic Degree"):
        rank = parse_rank(facts.get(category, ""))
        if age is not None and rank is not None and age < _LEAST_AGE[rank]:
            yield f"{facts[category]!r} at {age:.0f} years"


def duration_fits_age(facts: Facts) -> Iterator[str]:
    """Temporal: nothing lasts longer than a life, nor, of adults, than the years since 16."""
    age, days = _number(facts, "Age"), parse_days(facts.get("Duration", ""))
    if age is None or days is None:
        return
    if days / _DAYS_A_YEAR > (age - 16 if age >= 18 else age):
        yield f"{facts['Duration']!r} at {age:.0f} years"


def level_holds_degree(facts: Facts) -> Iterator[str]:
    """Professional: the education level reached is not below the degree."""
    level, degree = (
        parse_rank(facts.get(category, "")) for category in ("Education Level", "Academic Degree")
    )
    if level is not None and degree is not None and level < degree:
        yield f"{facts['Education Level']!r} with {facts['Academic Degree']!r}"


def licensed_post_needs_degree(facts: Facts) -> Iterator[str]:
    """Professional: who treats or represents others has a degree, and 21 years."""
    occupation, age = facts.get("Occupation", ""), _number(facts, "Age")
    if not _LICENSED.fullmatch(occupation):
        return
    level = facts.get("Education Level", "")
    if parse_rank(level) is Rank.BELOW_DEGREE:
        yield f"{occupation!r} with {level!r}"
    if age is not None and age < 21:
        yield f"{occupation!r} at {age:.0f} years"


def month_can_be_paid(facts: Facts) -> Iterator[str]:
    """Financial: a month costs at most one and a quarter of what it brings."""
    yield from _at_most(facts, "Monthly Expenses", 1.25)


def tax_is_part_of_pay(facts: Facts) -> Iterator[str]:
    """Financial: a tax payment is at most half a year's pay."""
    yield from _at_most(facts, "Tax Payment", 6)


def bonus_is_part_of_pay(facts: Facts) -> Iterator[str]:
    """Financial: a year's bonus is at most half a year's pay."""
    yield from _at_most(facts, "Annual Bonus", 6)


def loan_can_be_carried(facts: Facts) -> Iterator[str]:
    """Financial: a loan is at most eight years' pay, two where debts are below a tenth of it."""
    ratio = parse_percentage(facts.get("Debt Ratio", ""))
    years = 2 if ratio is not None and ratio < 10 else 8
    yield from _at_most(facts, "Loan Amount", years * 12)


def body_is_possible(facts: Facts) -> Iterator[str]:
    """Bodily: the body mass index, kilograms by square metre, lies between 14 and 45."""
    metres = parse_metres(facts.get("Height", ""))
    kilograms = parse_kilograms(facts.get("Weight", ""))
    if metres and kilograms and not 14 <= kilograms / metres**2 <= 45:
        yield f"{facts['Height']} and {facts['Weight']}"


def orientation_fits_gender(facts: Facts) -> Iterator[str]:
    """Bodily: "lesbian" is not said of a man."""
    gender, orientation = facts.get("Gender", ""), facts.get("Sexual Orientation", "")
    if gender.lower() in _MALE and orientation.lower() == "lesbian":
        yield f"{orientation!r} with {gender!r}"


def elder_is_older(relation: str, elder: Facts, younger: Facts) -> Iterator[str]:
    """Hierarchical: a parent is older by 18 years, a grandparent by 38."""
    ages = _number(elder, "Age"), _number(younger, "Age")
    least = _LEAST_GAP.get(relation)
    if least is None or ages[0] is None or ages[1] is None:
        return
    if ages[0] - ages[1] < least:
        yield f"{ages[0]:.0f} and {ages[1]:.0f} years, not {least} apart"


def kin_has_one_nationality(relation: str, elder: Facts, younger: Facts) -> Iterator[str]:
    """Hierarchical: nationality is handed down, and siblings share it."""
    one, other = elder.get("Nationality"), younger.get("Nationality")
    if relation in _KIN and one and other and one != other:
        yield f"{one!r} and {other!r}"


def senior_is_paid_as_much(relation: str, senior: Facts, junior: Facts) -> Iterator[str]:
    """Hierarchical: who leads or teaches earns at least what the other does."""
    one, other = (parse_amount(facts.get("Monthly Income", "")) for facts in (senior, junior))
    if relation not in _PAID_BY_RANK or one is None or other is None:
        return
    if one.currency == other.currency and one.value < other.value:
        yield f"{senior['Monthly Income']} over {junior['Monthly Income']}"


def shared_span_has_one_meaning(sample: Sample) -> Iterator[str]:
    """Intersection: what two people share by one span is of one type and category."""
    # Of each text and span, who has it first, and as what.
    first: dict[tuple[str, Span], tuple[str, Entity]] = {}
    told: set[tuple[str, str]] = set()
    owners: Counter[tuple[object, ...]] = Counter()
    for subject in sample.subjects:
        kinds = {(e.text, e.type, e.category, e.spans): e for e in subject.entities}
        # Two people with an annotation show all that more of them could.
        owners.update(kinds.keys())
        for twin in (entity for kind, entity in kinds.items() if owners[kind] <= 2):
            for span in spans_of(twin, sample.description):
                owner, entity = first.setdefault((twin.text, span), (subject.id, twin))
                same = (entity.type, entity.category) == (twin.type, twin.category)
                pair = f"{entity.category or entity.type} and {twin.category or twin.type}"
                if owner != subject.id and not same and (twin.text, pair) not in told:
                    told.add((twin.text, pair))
                    yield f"{twin.text!r} is {pair} on one span"


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


def _name(rule: Callable[..., Iterator[str]]) -> str:
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
