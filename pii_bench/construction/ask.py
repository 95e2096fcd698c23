"""Queries: a scenario, the facts that it needs, and abstractions in their place."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from pii_bench.construction.describe import FIRST_PERSON
from pii_bench.construction.markup import I, Person

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from random import Random

    from pii_bench.construction.people import Draft, Fact, Profile
    from pii_bench.construction.sentences import Writer

Needed = tuple[str, "Fact"]
"""A subject's id and one of their facts."""

_TRIES: Final = 8
_DOUBLED: Final = re.compile(r"\b(\w+) \1\b", re.IGNORECASE)

_COUNT_NAMES: Final = {1: "one", 2: "two", 3: "three"}

_LEVELS: Final[Mapping[str, float]] = {"near": 0.25, "mid": 0.5, "far": 0.25}
# Where a neighbour of the fact stands beside it, a far abstraction could mean either.
_LEVELS_BESIDE_NEIGHBOUR: Final[Mapping[str, float]] = {"near": 0.4, "mid": 0.6}

_NEIGHBOURS: Final = (
    {"Street Address", "City/Region", "Landmark"},
    {"Occupation", "Company Name"},
    {"Education Level", "Academic Degree", "Educational Institution"},
    {"Nationality", "Ethnicity", "Race"},
    {"Medical Condition", "Disability Status", "Healthcare Facility"},
    {"Monthly Income", "Social Security Payment", "Annual Bonus"},
    {"Account Balance", "Credit Limit", "Loan Amount", "Monthly Expenses"},
    {"Investment Return", "ROI", "Debt Ratio"},
    {"Phone Number", "Email Address"},
    {"Passport Number", "Driver's License", "Social Security Number", "Tax ID"},
    {"Bank Account", "Credit Card"},
    {"NGO", "Government Agency"},
    {"Employee ID", "Student ID"},
)


@dataclass(frozen=True, slots=True)
class Question:
    """A query and what it needs.

    Attributes:
        asker: subject id of who asks, "" for somebody else.
        scenario: `domain/scenario`.
        needs: E_q.
        frame: what was said, before anybody was meant by it.
        abstractions: of each need, likewise.
    """

    text: str
    asker: str
    scenario: str
    needs: tuple[Needed, ...]
    frame: str
    abstractions: tuple[str, ...]


@dataclass
class Interviewer:
    """Makes queries in one split."""

    writer: Writer
    random: Random
    _scenarios: dict[str, tuple[str, frozenset[tuple[str, str]]]] = field(default_factory=dict)
    _asked: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for domain, bank in self.writer.banks.queries.items():
            for name in bank.facets:
                needs = frozenset(_needs(bank.frames("needs", name)[0]))
                self._scenarios[f"{domain}/{name}"] = (domain, needs)

    def choose(
        self,
        facts: Sequence[Needed],
        count: int,
        avoid: frozenset[Needed] = frozenset(),
    ) -> tuple[str, tuple[Needed, ...]] | None:
        """A scenario and `count` of the facts that it needs; None where none has so many.

        Args:
            facts: what may be needed; those of a category that another subject has too come
                first, so that the person has to be understood.
            count: 1 to 3.
            avoid: facts that must not be needed.
        """
        possible: list[tuple[int, float, str, list[Needed]]] = []
        for name, (_, needs) in self._scenarios.items():
            fitting = [fact for fact in facts if fact not in avoid and _accepts(needs, fact[1])]
            if len(fitting) >= count:
                possible.append((self._asked.get(name, 0), self.random.random(), name, fitting))
        if not possible:
            return None
        # Of the scenarios that fit, one of the least asked.
        possible.sort(key=lambda item: item[:2])
        _, _, name, fitting = possible[0]
        twice = {
            fact[1].category
            for fact in fitting
            if any(o[0] != fact[0] and o[1].category == fact[1].category for o in facts)
        }
        self.random.shuffle(fitting)
        fitting.sort(key=lambda fact: fact[1].category not in twice)
        chosen: list[Needed] = []
        for fact in fitting:
            shared = any(fact[1].value == other[1].value for other in chosen)
            if len(chosen) < count and not shared:
                chosen.append(fact)
        if len(chosen) < count:
            return None
        self._asked[name] = self._asked.get(name, 0) + 1
        return name, tuple(chosen)

    def ask(
        self,
        scenario: str,
        needs: tuple[Needed, ...],
        profiles: Mapping[str, Profile],
        people: Mapping[str, Person],
        asker: str,
    ) -> Question:
        """Put a scenario's question about facts.

        Args:
            scenario: `domain/scenario`.
            needs: E_q, in any order.
            profiles: subject id to profile.
            people: subject id to how the asker speaks of them.
            asker: subject id, "" for somebody else.

        Raises:
            LookupError: every wording stumbles over a word.
        """
        domain, _, name = scenario.partition("/")
        section = _COUNT_NAMES[len(needs)]
        frames = self.writer.banks.queries[domain].frames(section, name)
        for _ in range(_TRIES):
            question = Question(
                text="",
                asker=asker,
                scenario=scenario,
                needs=needs,
                frame=self.writer.dealer.deal((scenario, section), frames),
                abstractions=tuple(
                    self._abstraction(fact, profiles[subject]) for subject, fact in needs
                ),
            )
            text = self.word(question, people)
            if _DOUBLED.search(text) is None:
                return replace(question, text=text)
        raise LookupError("a word stands twice where frame and abstraction meet")

    def word(self, question: Question, people: Mapping[str, Person]) -> str:
        """The text of a question, as its asker speaks of the people."""
        focus = self._focus(question.needs, question.asker)
        frame = question.frame
        pairs = zip(question.needs, question.abstractions, strict=True)
        for number, ((subject, _), abstraction) in enumerate(pairs, start=1):
            words = abstraction
            if subject != focus:
                pieces = self.writer.plain(abstraction, people[subject])
                words = "".join(str(piece) for piece in pieces)
                # `plain` begins a sentence; this stands inside one.
                if not words.startswith("I "):
                    words = words[0].lower() + words[1:]
            frame = frame.replace(f"<{number}>", words)
        return "".join(str(piece) for piece in self.writer.plain(frame, people[focus]))

    def _focus(self, needs: tuple[Needed, ...], asker: str) -> str:
        owners = [subject for subject, _ in needs]
        return asker if asker in owners else owners[0]

    def _abstraction(self, fact: Fact, profile: Profile) -> str:
        near = {name for group in _NEIGHBOURS if fact.category in group for name in group} - {
            fact.category
        }
        crowded = any(profile.fact(name) for name in near)
        levels = _LEVELS_BESIDE_NEIGHBOUR if crowded else _LEVELS
        level = self.random.choices(list(levels), list(levels.values()))[0]
        frames = self.writer.banks.facts[fact.category].frames(level, fact.facet)
        return self.writer.dealer.deal((fact.category, fact.facet, level), frames)


def viewpoint(
    draft: Draft, profiles: Mapping[str, Profile], random: Random
) -> tuple[str, dict[str, Person]]:
    """Who asks about a description, and how they speak of its people."""
    asker = _asker(draft, random)
    return asker, people_of(draft, profiles, asker)


def people_of(draft: Draft, profiles: Mapping[str, Profile], asker: str) -> dict[str, Person]:
    """How an asker (subject id, "" for somebody else) speaks of the people."""
    if draft.relation is None:
        outsider = replace(profiles["A"].voice, role=draft.roles.get("A"))
        return {"A": I if asker else outsider}
    roles = {
        "A": ("", draft.roles["A speaks of B"]),
        "B": (draft.roles["B speaks of A"], ""),
        "": (draft.roles["A"], draft.roles["B"]),
    }[asker]
    return {
        subject: I if subject == asker else replace(profiles[subject].voice, role=role)
        for subject, role in zip("AB", roles, strict=True)
    }


def _asker(draft: Draft, random: Random) -> str:
    if draft.relation is None:
        return "" if draft.roles.get("A") and random.random() < 0.55 else "A"
    own = draft.register in FIRST_PERSON or draft.register in {"transcript", "chat"}
    weights = (0.5, 0.3, 0.2) if own else (0.25, 0.25, 0.5)
    return random.choices(("A", "B", ""), weights)[0]


def _needs(line: str) -> list[tuple[str, str]]:
    pairs = []
    for entry in line.split(";"):
        category, _, facet = entry.partition(": ")
        pairs.append((category.strip(), facet.strip()))
    return pairs


def _accepts(needs: frozenset[tuple[str, str]], fact: Fact) -> bool:
    return bool(needs & {(fact.category, fact.facet), (fact.category, "")})
