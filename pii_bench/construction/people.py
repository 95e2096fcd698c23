"""Drawing people: categories, facets, values, and conflicts resolved by changing values."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from pii_bench.construction.rules import conflicts, relation_conflicts
from pii_bench.construction.values import Draw, draw_value, facets_of
from pii_bench.taxonomy import CATEGORIES, TYPE_OF_CATEGORY, PiiType

if TYPE_CHECKING:
    from collections.abc import Container, Sequence
    from random import Random

    from pii_bench.construction.pools import Pools
    from pii_bench.construction.rules import Relation

_PRONOUNS: Final = {"she": 0.46, "he": 0.46, "they": 0.08}
_SSN: Final = "Social Security Number"
_AMERICAN: Final = "United States"
_AMERICAN_SHARE: Final = 0.3
_OWN_CULTURE_SHARE: Final = 0.7
_TRIES: Final = 200
_FAVOUR: Final = 0.93

_ALIAS_SHARE: Final = 0.4
_SHARED_SHARE: Final = 0.75
# Two people with the same list of facts read as a table.
_ECHO_SHARE: Final = 0.35


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact about a person: an entity before it is written into a text.

    Attributes:
        category: one of the 55.
        facet: what the fact is about, where the category alone does not say
            ("job-start" for a date); "" elsewhere.
        value: the text of the entity.
    """

    category: str
    facet: str
    value: str


@dataclass(frozen=True, slots=True)
class Profile:
    """A person of a description.

    Attributes:
        id: of the subject in the sample, "A" or "B".
        facts: the name, the only one of type PER, and then others; categories differ.
        draw: what the values were drawn from; further ones can be.
    """

    id: str
    facts: tuple[Fact, ...]
    draw: Draw = field(compare=False, repr=False)

    @property
    def pools(self) -> Pools:
        """The pools of values."""
        return self.draw.pools

    def fact(self, category: str) -> Fact | None:
        """Return the fact of a category; None if there is none."""
        return next((fact for fact in self.facts if fact.category == category), None)


class Unresolvable(Exception):  # noqa: N818 - it is no error of anybody's
    """A profile whose conflicts cannot be resolved; it is dropped (paper, step 2)."""


@dataclass
class Census:
    """Draws the people of one split.

    Attributes:
        pools: where values come from.
        favoured: categories that come up more often than others of their type.
    """

    pools: Pools
    random: Random
    favoured: frozenset[str] = frozenset()

    def single(self, types: Sequence[PiiType], *, alias: bool) -> Profile:
        """Draw a person with a name and entities of these types.

        Raises:
            Unresolvable: conflicts remain.
        """
        draw = self._draw()
        return self._settle("A", self._categories(types, draw), draw, alias=alias)

    def pair(
        self,
        types: tuple[Sequence[PiiType], Sequence[PiiType]],
        relation: Relation,
        *,
        alias: bool,
    ) -> tuple[Profile, Profile]:
        """Draw two related people, with shared facts if the relation has any.

        Raises:
            Unresolvable: conflicts remain.
        """
        draw = self._draw()
        other = self._draw(draw)
        if relation.kin:
            other = replace(other, culture=draw.culture)
        shared = [
            (category, facet)
            for category, facet in relation.shared
            if all(TYPE_OF_CATEGORY[category] in own for own in types)
            and (relation.binding or self.random.random() < _SHARED_SHARE)
        ]
        forced = [category for category, _ in shared]
        a = self._settle("A", self._categories(types[0], draw, forced), draw, shared, alias=alias)
        lent = [fact for fact in a.facts if (fact.category, fact.facet) in shared]
        # The same categories, and about the same things, so that the person must be understood.
        echoed = [
            (fact.category, fact.facet)
            for fact in a.facts
            if self.random.random() < _ECHO_SHARE and (fact.category, fact.facet) not in shared
        ]
        wanted = [*forced, *(category for category, _ in echoed)]
        categories = self._categories(types[1], other, wanted)
        # What would have to be common but is not is about something else.
        unbound = [
            (category, self.random.choice([f for f in facets_of(category) if f != facet]))
            for category, facet in relation.shared
            if relation.binding and (category, facet) not in shared
        ]
        b = self._settle("B", categories, other, [*shared, *echoed, *unbound], lent, alias=alias)
        return self._settle_pair(a, b, relation, {fact.category for fact in lent})

    def _draw(self, other: Draw | None = None) -> Draw:
        random, countries = self.random, self.pools.countries
        if other is not None:
            country, city = other.country, other.city
        else:
            american = random.random() < _AMERICAN_SHARE
            name = _AMERICAN if american else random.choice(sorted(set(countries) - {_AMERICAN}))
            country = countries[name]
            city = country.cities[random.choice(sorted(country.cities))]
        cultures = self.pools.named_cultures
        own = country.name in cultures and random.random() < _OWN_CULTURE_SHARE
        return Draw(
            random=random,
            pools=self.pools,
            country=country,
            city=city,
            pronoun=random.choices(list(_PRONOUNS), list(_PRONOUNS.values()))[0],
            culture=country.name if own else random.choice(cultures),
            income=random.uniform(1400, 8200),
        )

    def _categories(
        self, types: Sequence[PiiType], draw: Draw, forced: Sequence[str] = ()
    ) -> list[str]:
        """Draw distinct categories of the types; forced ones replace others."""
        chosen: list[str] = []
        for pii_type in types:
            wanted = [
                name for name in forced if TYPE_OF_CATEGORY[name] is pii_type and name not in chosen
            ]
            possible = [
                name
                for name in CATEGORIES[pii_type]
                if name not in chosen and (draw.country.name == _AMERICAN or name != _SSN)
            ]
            chosen.append(wanted[0] if wanted else self._one_of(possible))
        return chosen

    def _one_of(self, possible: Sequence[str]) -> str:
        favoured = [name for name in possible if name in self.favoured]
        if favoured and self.random.random() < _FAVOUR:
            return self.random.choice(favoured)
        return self.random.choice(possible)

    def _settle(
        self,
        subject: str,
        categories: Sequence[str],
        draw: Draw,
        shared: Sequence[tuple[str, str]] = (),
        lent: Sequence[Fact] = (),
        *,
        alias: bool,
    ) -> Profile:
        """Draw every value, then redraw those that conflict."""
        facets = dict(shared)
        kept = {fact.category: fact for fact in lent}
        name = "Full Name"
        if alias and self.random.random() < _ALIAS_SHARE:
            name = self.random.choices(("Social Media Handle", "Nickname"))[0]
        facts = [Fact(name, "", draw_value(name, "", draw))]
        # The occupation first: what is earned follows from it.
        for category in sorted(categories, key=lambda c: c != "Occupation"):
            if category in kept:
                facts.append(kept[category])
                continue
            facet = facets.get(category) or self.random.choice(facets_of(category))
            value = draw_value(category, facet, self._paid(draw, facts))
            facts.append(Fact(category, facet, value))
        profile = Profile(subject, tuple(facts), draw)
        for _ in range(_TRIES):
            found = conflicts(profile)
            if not found:
                return profile
            profile = self._redraw(profile, found[0][1], kept.keys())
        raise Unresolvable

    def _settle_pair(
        self, a: Profile, b: Profile, relation: Relation, fixed: Container[str]
    ) -> tuple[Profile, Profile]:
        for _ in range(_TRIES):
            found = [*relation_conflicts(a, b, relation), *conflicts(a), *conflicts(b)]
            if not found:
                return a, b
            subject, category = found[0]
            if subject == "A":
                a = self._redraw(a, category, fixed)
            else:
                b = self._redraw(b, category, fixed)
        raise Unresolvable

    def _redraw(self, profile: Profile, category: str, fixed: Container[str]) -> Profile:
        if category in fixed:
            raise Unresolvable
        facet = next(fact.facet for fact in profile.facts if fact.category == category)
        if (category, facet) == ("Duration", "in-post"):
            # What conflicts with the day a job began is the facet, not the number.
            facet = self.random.choice(facets_of(category))
        value = draw_value(category, facet, self._paid(profile.draw, profile.facts))
        new = Fact(category, facet, value)
        facts = tuple(new if fact.category == category else fact for fact in profile.facts)
        return replace(profile, facts=facts)

    def _paid(self, draw: Draw, facts: Sequence[Fact]) -> Draw:
        """Draw amounts near the pay of the occupation, if there is one."""
        for fact in facts:
            if fact.category == "Occupation":
                job = self.pools.occupations[fact.value]
                return replace(draw, income=self.random.uniform(job.low, job.high))
        return draw
