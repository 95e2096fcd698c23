"""Relations between people, and consistency rules for their values (paper, step 2).

Each rule looks at one profile, or at two and their relation, and returns what
conflicts; the resolver draws those values anew. The checker of finished files
(`pii_bench.datasets.check.consistency`) is written independently of these.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pii_bench.construction.people import Profile


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation between A and B (paper, construction step 2).

    Attributes:
        shared: (category, facet) pairs that both may have with one value.
        least_gap: years by which A is older than B, at the least; negative allows younger.
        greatest_gap: at the most.
        binding: who has such a fact at all has it in common.
        kin: nationality is handed down.
        senior: A earns no less than B.
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

RELATIONS: Final[Mapping[str, Relation]] = MappingProxyType(
    {
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
)


Conflict: TypeAlias = tuple[str, str]
"""The subject and the category of a fact to draw anew."""

_DAYS_A_YEAR: Final = 365.25


def number(text: str) -> float:
    """Return the number in a value: "$2,180" is 2180, "41 days" is 41."""
    return float(re.sub(r"[^\d.]", "", text.replace(",", "")).strip("."))


def _number(profile: Profile, category: str) -> float | None:
    fact = profile.fact(category)
    return number(fact.value) if fact else None


def schooling_takes_years(profile: Profile) -> Iterator[str]:
    """A degree or level is not reached before its minimum age."""
    age, pools = _number(profile, "Age"), profile.pools
    for category, table in (
        ("Education Level", pools.education_levels),
        ("Academic Degree", pools.degrees),
    ):
        fact = profile.fact(category)
        if age is not None and fact and age < table[fact.value].age:
            yield "Age"


def working_life_begins_at_sixteen(profile: Profile) -> Iterator[str]:
    """Nobody has held a job for longer than since the age of 16."""
    age, duration, date = _number(profile, "Age"), profile.fact("Duration"), profile.fact("Date")
    if age is None:
        return
    in_post = duration and duration.facet == "in-post"
    if duration and in_post and age - number(duration.value) / _DAYS_A_YEAR < 16:
        yield "Duration"
    if (
        date
        and date.facet in {"job-start", "course-end"}
        and age - (2026 - int(date.value[:4])) < 17
    ):
        yield "Date"


def career_stage_fits_age(profile: Profile) -> Iterator[str]:
    """An occupation is not held before its minimum age."""
    age, occupation = _number(profile, "Age"), profile.fact("Occupation")
    if age is not None and occupation and age < profile.pools.occupations[occupation.value].age:
        yield "Age"


def post_and_start_agree(profile: Profile) -> Iterator[str]:
    """The duration of a job and its start date agree, or only one is given."""
    duration, date = profile.fact("Duration"), profile.fact("Date")
    if duration and date and (duration.facet, date.facet) == ("in-post", "job-start"):
        yield "Duration"


def occupation_has_its_schooling(profile: Profile) -> Iterator[str]:
    """An occupation is not held without the education that it needs."""
    occupation, ranks = profile.fact("Occupation"), _ranks(profile)
    jobs = profile.pools.occupations
    if occupation and ranks and max(ranks) < jobs[occupation.value].education:
        yield "Occupation"


def level_and_degree_agree(profile: Profile) -> Iterator[str]:
    """The education level matches the degree."""
    if len(_ranks(profile)) > 1:
        yield "Education Level"


def _ranks(profile: Profile) -> set[int]:
    level, degree = profile.fact("Education Level"), profile.fact("Academic Degree")
    ranks = {profile.pools.education_levels[level.value].rank} if level else set()
    return ranks | ({profile.pools.degrees[degree.value].rank} if degree else set())


def pay_fits_occupation(profile: Profile) -> Iterator[str]:
    """Income is between half and twice the pay of the occupation."""
    occupation, income = profile.fact("Occupation"), _number(profile, "Monthly Income")
    if occupation and income is not None:
        job = profile.pools.occupations[occupation.value]
        dollars = income / profile.draw.country.per_usd
        if not job.low / 2 <= dollars <= job.high * 2:
            yield "Monthly Income"


def home_is_one_place(profile: Profile) -> Iterator[str]:
    """City, landmark, address, agency and current school are at the place of residence."""
    country, city = profile.draw.country, profile.draw.city
    allowed = {
        "Landmark": city.landmarks,
        "Government Agency": country.agencies,
        "Political Affiliation": country.parties,
    }
    for category, names in allowed.items():
        fact = profile.fact(category)
        if fact and fact.value not in names:
            yield category
    for category, facet, names in (
        ("City/Region", "home", (city.name,)),
        ("Educational Institution", "current", city.universities),
    ):
        fact = profile.fact(category)
        if fact and fact.facet == facet and fact.value not in names:
            yield category
    address = profile.fact("Street Address")
    if address and re.sub(r"\d+", "{n}", address.value) not in country.streets:
        yield "Street Address"


def pay_covers_what_is_paid(profile: Profile) -> Iterator[str]:
    """Amounts do not exceed a number of monthly incomes.

    Expenses 1.25 of a month's; tax and bonus half a year's; a loan eight years', or two where debts
    are under a tenth.
    """
    income, ratio = _number(profile, "Monthly Income"), _number(profile, "Debt Ratio")
    for category, months in (
        ("Monthly Expenses", 1.25),
        ("Tax Payment", 6),
        ("Annual Bonus", 6),
        ("Loan Amount", 24 if ratio is not None and ratio < 10 else 96),
    ):
        amount = _number(profile, category)
        if income is not None and amount is not None and amount > months * income:
            yield category


def body_is_possible(profile: Profile) -> Iterator[str]:
    """Height and weight give a body mass index between 16 and 42."""
    height, weight = profile.fact("Height"), profile.fact("Weight")
    if height and weight and not 16 <= kilograms(weight.value) / metres(height.value) ** 2 <= 42:
        yield "Weight"


def gender_and_orientation_agree(profile: Profile) -> Iterator[str]:
    """Gender matches the pronoun of the text; a man is not called "lesbian"."""
    gender, orientation = profile.fact("Gender"), profile.fact("Sexual Orientation")
    pronoun = profile.draw.pronoun
    if gender and profile.pools.genders[gender.value] != pronoun:
        yield "Gender"
    if orientation and orientation.value == "lesbian" and pronoun == "he":
        yield "Sexual Orientation"


def relation_is_kept(a: Profile, b: Profile, relation: Relation) -> Iterator[Conflict]:
    """The elder person of a hierarchical relation is older by the minimum difference."""
    elder, younger = _number(a, "Age"), _number(b, "Age")
    if elder is not None and younger is not None:
        gap = elder - younger
        if not relation.least_gap <= gap <= relation.greatest_gap:
            yield (a.id if gap < relation.least_gap else b.id, "Age")


def a_generation_has_room(a: Profile, b: Profile, relation: Relation) -> Iterator[Conflict]:
    """If only one age is given, the other person can still be a living adult."""
    elder, younger = _number(a, "Age"), _number(b, "Age")
    if relation.least_gap > 0 and elder is not None and elder < 18 + relation.least_gap:
        yield a.id, "Age"
    if relation.least_gap > 0 and younger is not None and younger > 92 - relation.least_gap:
        yield b.id, "Age"


def what_binds_them_is_one(a: Profile, b: Profile, relation: Relation) -> Iterator[Conflict]:
    """Colleagues have one employer, flatmates one address, classmates one school."""
    for category, facet in relation.shared if relation.binding else ():
        own, other = a.fact(category), b.fact(category)
        if own and other and own.facet == other.facet == facet and own.value != other.value:
            yield b.id, category


def kin_share_no_impossible_origin(
    a: Profile, b: Profile, relation: Relation
) -> Iterator[Conflict]:
    """Parents, grandparents and siblings share the nationality."""
    own, other = a.fact("Nationality"), b.fact("Nationality")
    if relation.kin and own and other and own.value != other.value:
        yield b.id, "Nationality"


def senior_is_not_paid_less(a: Profile, b: Profile, relation: Relation) -> Iterator[Conflict]:
    """A supervisor earns at least as much as the people supervised."""
    own, other = _number(a, "Monthly Income"), _number(b, "Monthly Income")
    if relation.senior and own is not None and other is not None and own < other:
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
    relation_is_kept,
    a_generation_has_room,
    what_binds_them_is_one,
    kin_share_no_impossible_origin,
    senior_is_not_paid_less,
)


def conflicts(profile: Profile) -> list[Conflict]:
    """Return the conflicts in one profile."""
    return [(profile.id, category) for rule in RULES for category in rule(profile)]


def relation_conflicts(a: Profile, b: Profile, relation: Relation) -> list[Conflict]:
    """Return the conflicts between two profiles."""
    return [conflict for rule in RELATION_RULES for conflict in rule(a, b, relation)]


def metres(height: str) -> float:
    """Return a height in metres, from centimetres or from feet and inches."""
    if height.endswith("cm"):
        return number(height) / 100
    feet, inches = height.rstrip('"').split("'")
    return (int(feet) * 12 + int(inches)) * 0.0254


def kilograms(weight: str) -> float:
    """Return a weight such as "64 kg" or "150 lbs" in kilograms."""
    return number(weight) / (1 if weight.endswith("kg") else 2.205)
