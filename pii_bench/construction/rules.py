"""Relations between people, and consistency rules for their values (paper, step 2).

A rule takes one profile, or two profiles and their relation, and yields the categories of facts
that conflict with others; `people.Census` draws their values again. `data check` has rules of its
own (`pii_bench.datasets.check.consistency`), so that it does not repeat a fault of these.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from pii_bench.datasets.value_formats import parse_kilograms, parse_metres

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pii_bench.construction.people import Profile


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation between A and B (paper, construction step 2).

    Attributes:
        name: the name, A first.
        shared: (category, facet) of facts that may have the same value for both.
        least_gap: the minimum of A's age minus B's age; likewise `greatest_gap`.
        binding: True if two people with a fact of `shared` must have the same value.
        kin: True if both have the same nationality.
        senior: True if A earns at least as much as B.
    """

    name: str
    shared: tuple[tuple[str, str], ...]
    least_gap: int = -60
    greatest_gap: int = 60
    binding: bool = False
    kin: bool = False
    senior: bool = False


_EMPLOYER: Final = ("Company Name", "employer")
_HOME: Final = ("Street Address", "home")
_CITY: Final = ("City/Region", "home")
_SCHOOL: Final = ("Educational Institution", "current")

RELATIONS: Final[Mapping[str, Relation]] = {
    relation.name: relation
    for relation in (
        Relation("parent-child", (_HOME,), 18, 48, kin=True),
        Relation("grandparent-grandchild", (_CITY,), 38, 64, kin=True),
        Relation("siblings", (_CITY,), 1, 16, kin=True),
        Relation("partners", (_HOME, _CITY), -15, 15, binding=True),
        Relation("colleagues", (_EMPLOYER,), -45, 45, binding=True),
        Relation("supervisor-report", (_EMPLOYER,), 2, 45, senior=True, binding=True),
        Relation("mentor-apprentice", (_EMPLOYER,), 8, 50, senior=True, binding=True),
        Relation("classmates", (_SCHOOL,), -40, 40, binding=True),
        Relation("flatmates", (_HOME,), -30, 30, binding=True),
        Relation("neighbours", (("Landmark", "near-home"),)),
        Relation("friends", (_CITY,), -40, 40),
        Relation("landlord-tenant", (_CITY,)),
        Relation("carer-client", (_CITY,)),
        Relation("teammates", (("NGO", "volunteers"),), -40, 40),
        Relation("relative", (_CITY,), 8, 55),
        Relation("cousins", (_CITY,), -20, 20),
    )
}


Conflict: TypeAlias = tuple[str, str]
"""The subject id and the category of a fact whose value must change."""

# The year of the texts.
_YEAR: Final = 2026


def number(text: str) -> float:
    """Return the number in a value: "$2,180" is 2180, "41 days" is 41."""
    return float(re.sub(r"[^\d.]", "", text.replace(",", "")).strip("."))


def _number(profile: Profile, category: str) -> float | None:
    fact = profile.fact(category)
    return number(fact.value) if fact else None


def schooling_takes_years(profile: Profile) -> Iterator[str]:
    """A degree or level is not reached before its minimum age."""
    age = _number(profile, "Age")
    level, degree = profile.fact("Education Level"), profile.fact("Academic Degree")
    if age is None:
        return
    if level and age < profile.draw.pools.education_levels[level.value].age:
        yield "Age"
    if degree and age < profile.draw.pools.degrees[degree.value].age:
        yield "Age"


def working_life_begins_at_sixteen(profile: Profile) -> Iterator[str]:
    """A job has not begun before the age of 16, and a course has not ended before 17."""
    age, duration, date = _number(profile, "Age"), profile.fact("Duration"), profile.fact("Date")
    if age is None:
        return
    if duration and duration.facet == "in-post" and age - number(duration.value) / 365.25 < 16:
        yield "Duration"
    if date and date.facet in {"job-start", "course-end"}:
        years = _YEAR - int(date.value[:4])
        if age - years < 17:
            yield "Date"


def career_stage_fits_age(profile: Profile) -> Iterator[str]:
    """An occupation is not held before its minimum age."""
    age, occupation = _number(profile, "Age"), profile.fact("Occupation")
    jobs = profile.draw.pools.occupations
    if age is not None and occupation and age < jobs[occupation.value].age:
        yield "Age"


def post_and_start_agree(profile: Profile) -> Iterator[str]:
    """A profile does not have both the duration of a job and its start date."""
    duration, date = profile.fact("Duration"), profile.fact("Date")
    if duration and date and (duration.facet, date.facet) == ("in-post", "job-start"):
        yield "Duration"


def occupation_has_its_schooling(profile: Profile) -> Iterator[str]:
    """An occupation is not held without the education that it needs."""
    occupation, ranks = profile.fact("Occupation"), _ranks(profile)
    if occupation and ranks:
        job = profile.draw.pools.occupations[occupation.value]
        if max(ranks) < job.education:
            yield "Occupation"


def level_and_degree_agree(profile: Profile) -> Iterator[str]:
    """The education level and the degree have the same rank."""
    if len(_ranks(profile)) > 1:
        yield "Education Level"


def _ranks(profile: Profile) -> set[int]:
    """Return the ranks of the education level and of the degree."""
    ranks: set[int] = set()
    if level := profile.fact("Education Level"):
        ranks.add(profile.draw.pools.education_levels[level.value].rank)
    if degree := profile.fact("Academic Degree"):
        ranks.add(profile.draw.pools.degrees[degree.value].rank)
    return ranks


def pay_fits_occupation(profile: Profile) -> Iterator[str]:
    """Income is between half and twice the pay of the occupation."""
    occupation, income = profile.fact("Occupation"), _number(profile, "Monthly Income")
    if occupation and income is not None:
        job = profile.draw.pools.occupations[occupation.value]
        dollars = income / profile.draw.country.per_usd
        if not job.low / 2 <= dollars <= job.high * 2:
            yield "Monthly Income"


def home_is_one_place(profile: Profile) -> Iterator[str]:
    """Landmark, agency, party, city, school and address are of the place of residence."""
    country, city = profile.draw.country, profile.draw.city
    local = {
        "Landmark": city.landmarks,
        "Government Agency": country.agencies,
        "Political Affiliation": country.parties,
        "City/Region": (city.name,),
        "Educational Institution": city.universities,
        "Street Address": country.streets,
    }
    # A city of origin or a former school may be elsewhere.
    only = {"City/Region": "home", "Educational Institution": "current"}
    for category, values in local.items():
        fact = profile.fact(category)
        if fact is None or fact.facet != only.get(category, fact.facet):
            continue
        if {fact.value, re.sub(r"\d+", "{n}", fact.value)}.isdisjoint(values):
            yield category


def pay_covers_what_is_paid(profile: Profile) -> Iterator[str]:
    """Amounts do not exceed a number of monthly incomes.

    This is 1.25 for expenses, 6 for tax and bonus, and 96 for a loan, or 24 if the debt ratio is
    below 10%.
    """
    income, debt_ratio = _number(profile, "Monthly Income"), _number(profile, "Debt Ratio")
    if income is None:
        return
    has_little_debt = debt_ratio is not None and debt_ratio < 10
    most_months = {
        "Monthly Expenses": 1.25,
        "Tax Payment": 6,
        "Annual Bonus": 6,
        "Loan Amount": 24 if has_little_debt else 96,
    }
    for category, months in most_months.items():
        amount = _number(profile, category)
        if amount is not None and amount > months * income:
            yield category


def body_is_possible(profile: Profile) -> Iterator[str]:
    """Height and weight give a body mass index between 16 and 42."""
    height, weight = profile.fact("Height"), profile.fact("Weight")
    if height and weight:
        metres, kilograms = parse_metres(height.value), parse_kilograms(weight.value)
        if metres and kilograms and not 16 <= kilograms / metres**2 <= 42:
            yield "Weight"


def gender_and_orientation_agree(profile: Profile) -> Iterator[str]:
    """Gender matches the pronoun of the text; a man is not called "lesbian"."""
    gender, orientation = profile.fact("Gender"), profile.fact("Sexual Orientation")
    pronoun = profile.draw.pronoun
    if gender and profile.draw.pools.genders[gender.value] != pronoun:
        yield "Gender"
    if orientation and orientation.value == "lesbian" and pronoun == "he":
        yield "Sexual Orientation"


def age_gap_fits_relation(a: Profile, b: Profile, relation: Relation) -> Iterator[Conflict]:
    """The difference of the ages is in the range of the relation."""
    age_a, age_b = _number(a, "Age"), _number(b, "Age")
    if age_a is None or age_b is None:
        return
    if age_a - age_b < relation.least_gap:
        yield a.id, "Age"
    elif age_a - age_b > relation.greatest_gap:
        yield b.id, "Age"


def other_age_is_possible(a: Profile, b: Profile, relation: Relation) -> Iterator[Conflict]:
    """If A must be older and only one age is known, the other person can be 18 to 92."""
    if relation.least_gap <= 0:
        return
    age_a, age_b = _number(a, "Age"), _number(b, "Age")
    if age_a is not None and age_a < 18 + relation.least_gap:
        yield a.id, "Age"
    if age_b is not None and age_b > 92 - relation.least_gap:
        yield b.id, "Age"


def binding_facts_are_equal(a: Profile, b: Profile, relation: Relation) -> Iterator[Conflict]:
    """Colleagues have one employer, flatmates one address, classmates one school."""
    if not relation.binding:
        return
    for category, facet in relation.shared:
        fact_a, fact_b = a.fact(category), b.fact(category)
        if fact_a and fact_b and fact_a.facet == fact_b.facet == facet and fact_a != fact_b:
            yield b.id, category


def kin_have_one_nationality(a: Profile, b: Profile, relation: Relation) -> Iterator[Conflict]:
    """Parents, grandparents and siblings have the nationality of their kin."""
    fact_a, fact_b = a.fact("Nationality"), b.fact("Nationality")
    if relation.kin and fact_a and fact_b and fact_a.value != fact_b.value:
        yield b.id, "Nationality"


def senior_is_not_paid_less(a: Profile, b: Profile, relation: Relation) -> Iterator[Conflict]:
    """A supervisor earns at least as much as the people supervised."""
    income_a, income_b = _number(a, "Monthly Income"), _number(b, "Monthly Income")
    if not relation.senior or income_a is None or income_b is None:
        return
    if income_a < income_b:
        yield b.id, "Monthly Income"


RULES: Final[tuple[Callable[[Profile], Iterator[str]], ...]] = (
    schooling_takes_years,
    working_life_begins_at_sixteen,
    career_stage_fits_age,
    post_and_start_agree,
    occupation_has_its_schooling,
    level_and_degree_agree,
    pay_fits_occupation,
    home_is_one_place,
    pay_covers_what_is_paid,
    body_is_possible,
    gender_and_orientation_agree,
)

RELATION_RULES: Final[tuple[Callable[[Profile, Profile, Relation], Iterator[Conflict]], ...]] = (
    age_gap_fits_relation,
    other_age_is_possible,
    binding_facts_are_equal,
    kin_have_one_nationality,
    senior_is_not_paid_less,
)


def conflicts(profile: Profile) -> list[Conflict]:
    """Return the conflicts in one profile."""
    return [(profile.id, category) for rule in RULES for category in rule(profile)]


def relation_conflicts(a: Profile, b: Profile, relation: Relation) -> list[Conflict]:
    """Return the conflicts between two profiles."""
    return [conflict for rule in RELATION_RULES for conflict in rule(a, b, relation)]
