"""Drawing people: categories, facets, values, and conflicts resolved by changing values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from pii_bench.construction.people import Fact, Place, Profile
from pii_bench.construction.rules import conflicts, relation_conflicts
from pii_bench.construction.values import Draw, draw_value, facets_of
from pii_bench.taxonomy import CATEGORIES, TYPE_OF_CATEGORY, PiiType

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

    from pii_bench.construction.people import Names
    from pii_bench.construction.pools import Pools
    from pii_bench.construction.relations import Relation

_PRONOUNS: Final = {"she": 0.46, "he": 0.46, "they": 0.08}
_SSN: Final = "Social Security Number"
_AMERICAN: Final = "United States"
_AMERICAN_SHARE: Final = 0.3
_OWN_CULTURE_SHARE: Final = 0.7
_TRIES: Final = 200
_FAVOUR: Final = 0.93

_ALIAS_SHARE: Final = 0.4
_SHARED_SHARE: Final = 0.75
_ECHO_SHARE: Final = 0.85
_PER_WEIGHTS: Final = {"Full Name": 0.0, "Social Media Handle": 0.5, "Nickname": 0.5}


class Unresolvable(Exception):  # noqa: N818 - it is no error of anybody's
    """A profile whose conflicts no change of values mends; it is dropped (paper, step 2)."""


@dataclass
class Census:
    """Draws the people of one split.

    Attributes:
        pools: where values come from.
        favoured: categories that come up more often than others of their type.
        echo: how often a second person has a fact of the first one's categories.
    """

    pools: Pools
    names: Names
    random: Random
    favoured: frozenset[str] = frozenset()
    echo: float = _ECHO_SHARE

    def single(self, types: Sequence[PiiType], *, alias: bool) -> Profile:
        """A person with entities of these types and a name.

        Raises:
            Unresolvable: conflicts remain.
        """
        draw = self._draw()
        categories = self._categories(types, draw)
        return self._settle("A", categories, draw, alias=alias)

    def pair(
        self,
        types: tuple[Sequence[PiiType], Sequence[PiiType]],
        relation: Relation,
        *,
        alias: bool,
    ) -> tuple[Profile, Profile]:
        """Two related people, with shared facts where the relation has such.

        Raises:
            Unresolvable: conflicts remain.
        """
        draw = self._draw()
        other = self._draw(draw if relation.shared or relation.kin else None)
        if relation.kin:
            other = replace(other, culture=draw.culture)
        shared = [
            (category, facet)
            for category, facet in relation.shared
            if self._can_share(category, types)
            and (relation.binding or self.random.random() < _SHARED_SHARE)
        ]
        forced = [category for category, _ in shared]
        a = self._settle("A", self._categories(types[0], draw, forced), draw, shared, alias=alias)
        lent = [fact for fact in a.facts if (fact.category, fact.facet) in shared]
        # The same categories, and about the same things, so that the person must be understood.
        echoed = [
            (fact.category, fact.facet)
            for fact in a.facts
            if self.random.random() < self.echo and (fact.category, fact.facet) not in shared
        ]
        wanted = [*forced, *(category for category, _ in echoed)]
        categories = self._categories(types[1], other, wanted)
        unbound = self._unbound(relation, shared)
        facets = [*shared, *echoed, *unbound]
        b = self._settle("B", categories, other, facets, lent, alias=alias)
        return self._settle_pair(a, b, relation, (draw, other), lent)

    def _draw(self, other: Draw | None = None) -> Draw:
        random = self.random
        countries = self.pools.countries
        if other is not None:
            place = other.place
        else:
            american = random.random() < _AMERICAN_SHARE
            name = _AMERICAN if american else random.choice(sorted(set(countries) - {_AMERICAN}))
            place = Place(name, random.choice(sorted(countries[name].cities)))
        own = place.country in self.names.cultures and random.random() < _OWN_CULTURE_SHARE
        return Draw(
            random=random,
            pools=self.pools,
            names=self.names,
            place=place,
            pronoun=random.choices(list(_PRONOUNS), list(_PRONOUNS.values()))[0],
            culture=place.country if own else random.choice(self.names.cultures),
            income=random.uniform(1400, 8200),
        )

    def _categories(
        self, types: Sequence[PiiType], draw: Draw, forced: Sequence[str] = ()
    ) -> list[str]:
        """Distinct categories of the types; forced ones take the place of others."""
        chosen: list[str] = []
        for pii_type in types:
            wanted = [
                name for name in forced if TYPE_OF_CATEGORY[name] is pii_type and name not in chosen
            ]
            possible = [
                name
                for name in CATEGORIES[pii_type]
                if name not in chosen and (draw.place.country == _AMERICAN or name != _SSN)
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
        """Draw every value, then change those that conflict."""
        facets = dict(shared)
        kept = {fact.category: fact for fact in lent}
        name = "Full Name"
        if alias and self.random.random() < _ALIAS_SHARE:
            name = self.random.choices(list(_PER_WEIGHTS), list(_PER_WEIGHTS.values()))[0]
        facts = [Fact(name, "", draw_value(name, "", draw))]
        # The occupation first: what is earned follows from it.
        for category in sorted(categories, key=lambda c: c != "Occupation"):
            if category in kept:
                facts.append(kept[category])
                continue
            facet = facets.get(category) or self.random.choice(facets_of(category))
            value = draw_value(category, facet, self._paid(draw, facts))
            facts.append(Fact(category, facet, value))
        profile = Profile(subject, draw.pronoun, draw.place, tuple(facts), draw)
        for _ in range(_TRIES):
            found = conflicts(profile, self.pools)
            if not found:
                return profile
            profile = self._redraw(profile, found[0].category, draw, tuple(kept))
        raise Unresolvable

    def _settle_pair(
        self,
        a: Profile,
        b: Profile,
        relation: Relation,
        draws: tuple[Draw, Draw],
        lent: Sequence[Fact],
    ) -> tuple[Profile, Profile]:
        fixed = tuple(fact.category for fact in lent)
        for _ in range(_TRIES):
            between = relation_conflicts(a, b, relation)
            own = {p.id: conflicts(p, self.pools) for p in (a, b)}
            found = [*between, *own["A"], *own["B"]]
            if not found:
                return a, b
            if found[0].subject == "A":
                a = self._redraw(a, found[0].category, draws[0], fixed)
            else:
                b = self._redraw(b, found[0].category, draws[1], fixed)
        raise Unresolvable

    def _redraw(
        self, profile: Profile, category: str, draw: Draw, fixed: tuple[str, ...]
    ) -> Profile:
        if category in fixed:
            raise Unresolvable
        facet = next(fact.facet for fact in profile.facts if fact.category == category)
        if (category, facet) == ("Duration", "in-post"):
            # What conflicts with the day a job began is the facet, not the number.
            facet = self.random.choice(facets_of(category))
        value = draw_value(category, facet, self._paid(draw, profile.facts))
        new = Fact(category, facet, value)
        facts = tuple(new if fact.category == category else fact for fact in profile.facts)
        return replace(profile, facts=facts)

    def _paid(self, draw: Draw, facts: Sequence[Fact]) -> Draw:
        """Amounts lie around what the occupation pays, where there is one."""
        for fact in facts:
            if fact.category == "Occupation":
                job = self.pools.occupations[fact.value]
                return replace(draw, income=self.random.uniform(job.low, job.high))
        return draw

    def _unbound(
        self, relation: Relation, shared: Sequence[tuple[str, str]]
    ) -> list[tuple[str, str]]:
        """For what would have to be common but is not: another facet."""
        return [
            (category, self.random.choice([f for f in facets_of(category) if f != facet]))
            for category, facet in relation.shared
            if relation.binding and (category, facet) not in shared
        ]

    def _can_share(self, category: str, types: tuple[Sequence[PiiType], Sequence[PiiType]]) -> bool:
        return all(TYPE_OF_CATEGORY[category] in own for own in types)
