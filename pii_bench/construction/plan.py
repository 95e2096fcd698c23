"""What a text says in which order: facts grouped by topic, one to three to a sentence."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from random import Random

    from pii_bench.construction.people import Fact

_TOPICS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "work": (
            *("Occupation", "Company Name", "Employee ID", "Monthly Income", "Annual Bonus"),
            *("Date: job-start", "Date: accident", "Time: shift-start"),
            *("Duration: commute", "Duration: in-post", "Duration: training", "Duration: absence"),
        ),
        "study": (
            *("Educational Institution", "Student ID", "Education Level", "Academic Degree"),
            *("Date: exam", "Date: course-end", "Time: class"),
        ),
        "money": (
            *("Monthly Expenses", "Account Balance", "Loan Amount", "Credit Limit"),
            *("Social Security Payment", "Tax Payment", "Debt Ratio", "Investment Return", "ROI"),
            *("Credit Score", "Bank Account", "Credit Card", "Tax ID", "Date: claim"),
        ),
        "health": (
            *("Medical Condition", "Disability Status", "Blood Type", "Height", "Weight"),
            *("Healthcare Facility", "Date: operation", "Time: medication", "Time: waking"),
            *("Duration: recovery", "Duration: sleep", "Duration: session"),
        ),
        "self": (
            *("Age", "Gender", "Sexual Orientation", "Nationality", "Ethnicity", "Race"),
            *("Religious Belief", "Political Affiliation", "Physical Features", "NGO"),
        ),
        "place": (
            *("Street Address", "City/Region", "Landmark", "Date: home-move", "Date: trip"),
            *("Time: train",),
        ),
    }
)

_TOPIC_OF: Final = MappingProxyType({name: topic for topic, ns in _TOPICS.items() for name in ns})


def topic(fact: Fact) -> str:
    """The topic of a fact; papers, contacts and appointments have one of their own."""
    named = f"{fact.category}: {fact.facet}"
    return _TOPIC_OF.get(named) or _TOPIC_OF.get(fact.category) or "papers"


def group(
    facts: Sequence[Fact], sizes: Mapping[int, float], random: Random
) -> list[tuple[Fact, ...]]:
    """Cut facts into groups of one to three, topics in random order.

    Args:
        facts: what is to be said.
        sizes: size of a group to its weight.
        random: decides.
    """
    topics = sorted({topic(fact) for fact in facts})
    random.shuffle(topics)
    shuffled = random.sample(list(facts), len(facts))
    ordered = sorted(shuffled, key=lambda fact: topics.index(topic(fact)))
    groups: list[tuple[Fact, ...]] = []
    while ordered:
        size = random.choices(list(sizes), list(sizes.values()))[0]
        if len(ordered) - size == 1 and sizes[1] < sizes[2]:
            # Where single facts are rare, none is left over: two or three together, four in twos.
            size = {2: 2, 3: 3, 4: 2}.get(len(ordered), size)
        groups.append(tuple(ordered[:size]))
        del ordered[:size]
    return groups
