"""Drawing people: categories, facets and values. Values that conflict are drawn again."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from pii_bench.construction.rules import conflicts, relation_conflicts
from pii_bench.construction.values import Draw, draw_value, facets_of
from pii_bench.taxonomy import CATEGORIES, TYPE_OF_CATEGORY, PiiType

if TYPE_CHECKING:
    from collections.abc import Container, Mapping, Sequence
    from random import Random

    from pii_bench.construction.pools import Country, Pools
    from pii_bench.construction.rules import Relation

_PRONOUN_SHARES: Final = {"she": 0.46, "he": 0.46, "they": 0.08}
_SSN: Final = "Social Security Number"
_AMERICAN: Final = "United States"
_AMERICAN_SHARE: Final = 0.3
# The share of people whose name is of the culture of their country.
_LOCAL_NAME_SHARE: Final = 0.7
_TRIES: Final = 200
_FAVOURED_SHARE: Final = 0.93

_ALIAS_SHARE: Final = 0.4
_SHARED_SHARE: Final = 0.75
# The share of A's categories that B gets too. Two equal lists of facts would read like a table.
_REPEATED_SHARE: Final = 0.35


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact about a person, which becomes an entity of the text.

    `facet` is what the fact is about, if the category does not determine it, such as "job-start"
    for a date; otherwise "".
    """

    category: str
    facet: str
    value: str


@dataclass(frozen=True, slots=True)
class Profile:
    """A person of a description, with the id "A" or "B".

    The first fact is the name, the only one of type PER; the others have distinct categories.
    """

    id: str
    facts: tuple[Fact, ...]
    draw: Draw = field(compare=False, repr=False)

    def fact(self, category: str) -> Fact | None:
        """Return the fact of a category; None if there is none."""
        return next((fact for fact in self.facts if fact.category == category), None)


class Unresolvable(Exception):  # noqa: N818 - callers expect it and draw again
    """The conflicts of a profile cannot be resolved, so that it is dropped (paper, step 2)."""


@dataclass
class Census:
    """Draws the people of one split; `favoured` categories more often than others of their type."""

    pools: Pools
    random: Random
    favoured: frozenset[str] = frozenset()

    def single(self, types: Sequence[PiiType], *, alias: bool) -> Profile:
        """Draw a person with a name, which may be an alias, and entities of these types.

        Raises:
            Unresolvable: conflicts remain.
        """
        draw = self._draw_person()
        return self._draw_profile("A", self._categories(types, draw), draw, alias=alias)

    def pair(
        self,
        types: tuple[Sequence[PiiType], Sequence[PiiType]],
        relation: Relation,
        *,
        alias: bool,
    ) -> tuple[Profile, Profile]:
        """Draw two people, the first of whom is the `relation` of the second, with shared facts.

        `types` are those of the entities of each person, except the name, which may be an alias.

        Raises:
            Unresolvable: conflicts remain.
        """
        draw_a = self._draw_person()
        draw_b = self._draw_person(home=draw_a)
        if relation.kin:
            draw_b = replace(draw_b, culture=draw_a.culture)
        shared = self._shared_facets(types, relation)
        categories = self._categories(types[0], draw_a, list(shared))
        a = self._draw_profile("A", categories, draw_a, shared, alias=alias)
        shared_facts = {
            fact.category: fact for fact in a.facts if shared.get(fact.category) == fact.facet
        }
        # Facts of B about the same things as those of A; the reader must tell the people apart.
        repeated = {
            fact.category: fact.facet
            for fact in a.facts
            if self.random.random() < _REPEATED_SHARE and fact.category not in shared_facts
        }
        categories = self._categories(types[1], draw_b, [*shared, *repeated])
        # Facts that the relation requires to be equal, but that are not shared, get another facet.
        differing: dict[str, str] = {}
        for category, facet in relation.shared:
            if relation.binding and category not in shared:
                other_facets = [other for other in facets_of(category) if other != facet]
                differing[category] = self.random.choice(other_facets)
        facets = {**shared, **repeated, **differing}
        b = self._draw_profile("B", categories, draw_b, facets, shared_facts, alias=alias)
        people = {"A": a, "B": b}
        self._resolve(people, relation, shared_facts)
        return people["A"], people["B"]

    def _shared_facets(
        self, types: tuple[Sequence[PiiType], Sequence[PiiType]], relation: Relation
    ) -> dict[str, str]:
        """Draw the facts that both people have in common: category to facet."""
        shared: dict[str, str] = {}
        for category, facet in relation.shared:
            pii_type = TYPE_OF_CATEGORY[category]
            if pii_type not in types[0] or pii_type not in types[1]:
                continue
            if relation.binding or self.random.random() < _SHARED_SHARE:
                shared[category] = facet
        return shared

    def _draw_person(self, home: Draw | None = None) -> Draw:
        """Draw the properties of a person, who lives where `home` does if it is given."""
        if home is not None:
            country, city = home.country, home.city
        else:
            country = self._country()
            city = country.cities[self.random.choice(sorted(country.cities))]
        cultures = self.pools.named_cultures
        has_local_name = country.name in cultures and self.random.random() < _LOCAL_NAME_SHARE
        return Draw(
            random=self.random,
            pools=self.pools,
            country=country,
            city=city,
            pronoun=self.random.choices(list(_PRONOUN_SHARES), list(_PRONOUN_SHARES.values()))[0],
            culture=country.name if has_local_name else self.random.choice(cultures),
            income=self.random.uniform(1400, 8200),
        )

    def _country(self) -> Country:
        countries = self.pools.countries
        if self.random.random() < _AMERICAN_SHARE:
            return countries[_AMERICAN]
        return countries[self.random.choice(sorted(countries.keys() - {_AMERICAN}))]

    def _categories(
        self, types: Sequence[PiiType], draw: Draw, required: Sequence[str] = ()
    ) -> list[str]:
        """Draw a distinct category for each type, with as many of the required ones as fit."""
        chosen: list[str] = []
        for pii_type in types:
            unused = [name for name in CATEGORIES[pii_type] if name not in chosen]
            due = [name for name in required if name in unused]
            if due:
                chosen.append(due[0])
                continue
            if draw.country.name != _AMERICAN and _SSN in unused:
                unused.remove(_SSN)
            favoured = [name for name in unused if name in self.favoured]
            if favoured and self.random.random() < _FAVOURED_SHARE:
                unused = favoured
            chosen.append(self.random.choice(unused))
        return chosen

    def _draw_profile(
        self,
        subject: str,
        categories: Sequence[str],
        draw: Draw,
        facets: Mapping[str, str] = {},
        shared_facts: Mapping[str, Fact] = {},
        *,
        alias: bool,
    ) -> Profile:
        """Draw the name and a fact of each category, then redraw the values that conflict.

        Facets are drawn for categories that `facets` lacks, values for those that `shared_facts`
        lacks.
        """
        name = "Full Name"
        if alias and self.random.random() < _ALIAS_SHARE:
            (name,) = self.random.choices(("Social Media Handle", "Nickname"))
        facts = [Fact(name, "", draw_value(name, "", draw))]
        # The occupation is drawn first, because amounts depend on its pay.
        for category in sorted(categories, key=lambda category: category != "Occupation"):
            if category in shared_facts:
                facts.append(shared_facts[category])
                continue
            facet = facets.get(category) or self.random.choice(facets_of(category))
            value = draw_value(category, facet, self._with_pay(draw, facts))
            facts.append(Fact(category, facet, value))
        people = {subject: Profile(subject, tuple(facts), draw)}
        self._resolve(people, None, shared_facts)
        return people[subject]

    def _resolve(
        self, people: dict[str, Profile], relation: Relation | None, fixed: Container[str]
    ) -> None:
        """Redraw values that conflict, except those of the fixed categories."""
        for _ in range(_TRIES):
            problems = relation_conflicts(people["A"], people["B"], relation) if relation else []
            for profile in people.values():
                problems += conflicts(profile)
            if not problems:
                return
            subject, category = problems[0]
            people[subject] = self._redraw(people[subject], category, fixed)
        raise Unresolvable

    def _redraw(self, profile: Profile, category: str, fixed: Container[str]) -> Profile:
        fact = profile.fact(category)
        if fact is None or category in fixed:
            raise Unresolvable
        facet = fact.facet
        if (category, facet) == ("Duration", "in-post"):
            # Every number of days conflicts with a start date, so the facet changes too.
            facet = self.random.choice(facets_of(category))
        value = draw_value(category, facet, self._with_pay(profile.draw, profile.facts))
        new = Fact(category, facet, value)
        facts = tuple(new if fact.category == category else fact for fact in profile.facts)
        return replace(profile, facts=facts)

    def _with_pay(self, draw: Draw, facts: Sequence[Fact]) -> Draw:
        """Return the properties with an income that fits the occupation, if there is one."""
        jobs = [fact.value for fact in facts if fact.category == "Occupation"]
        if not jobs:
            return draw
        job = self.pools.occupations[jobs[0]]
        return replace(draw, income=self.random.uniform(job.low, job.high))
