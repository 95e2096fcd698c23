"""What a writing model is asked for: people drawn and settled, a kind of text, and E_q."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Final

from pii_bench.check import sample_problems
from pii_bench.construction.allot import allot_types
from pii_bench.construction.ask import Interviewer
from pii_bench.construction.build import annotate, askable
from pii_bench.construction.describe import PAIR_REGISTERS, SINGLE_REGISTERS, takes_alias
from pii_bench.construction.grammar import Dealer, load_banks
from pii_bench.construction.manuscript import find_mentions
from pii_bench.construction.names import Names
from pii_bench.construction.pools import load_pools
from pii_bench.construction.profiles import Census, Unresolvable
from pii_bench.construction.relations import RELATIONS
from pii_bench.construction.sentences import Writer
from pii_bench.datasets.sample import Sample

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pii_bench.construction.ask import Needed
    from pii_bench.construction.build import Plan
    from pii_bench.construction.people import Profile
    from pii_bench.construction.relations import Relation
    from pii_bench.taxonomy import PiiType

_TRIES: Final = 200
# How often E_q is one person's where there are two.
_ONE_PERSON_SHARE: Final = 0.65


@dataclass(frozen=True, slots=True)
class Commission:
    """One sample that a model is to write.

    Attributes:
        id: of the sample.
        register: kind of text.
        profiles: subject id to person, one or two; no value stands for two facts, unless the
            relation lets both people share it.
        relation: between the two; None for one.
        chars: length that the description should have, in characters.
        scenario: `domain/scenario` that needs E_q.
        needs: E_q.
        asker: subject id of who asks, "" for somebody else.
    """

    id: str
    register: str
    profiles: Mapping[str, Profile]
    relation: Relation | None
    chars: int
    scenario: str
    needs: tuple[Needed, ...]
    asker: str


def draw_commissions(plan: Plan, seed: str, prefix: str) -> Iterator[Commission]:
    """Draw the people of a set, resolve their conflicts, and draw E_q of each sample.

    A profile whose values the checker refuses is drawn anew: no text could mend it.

    Args:
        plan: what the set is to be.
        seed: the same seed gives the same commissions.
        prefix: of the ids.

    Raises:
        RuntimeError: no sound profile came in many attempts.
    """
    office = _Office(plan, Random(f"{seed}/writer/{plan.name}"))
    dealt = allot_types(plan.size * plan.people, plan.types, office.random)
    for number in range(plan.size):
        types = dealt[number * plan.people : (number + 1) * plan.people]
        yield office.draw(f"{prefix}-{number + 1:04d}", types)


class _Office:
    """Draws commissions for one plan."""

    def __init__(self, plan: Plan, random: Random) -> None:
        banks, pools = load_banks(plan.split), load_pools(plan.split)
        self.plan, self.random = plan, random
        self.census = Census(pools, Names(pools), random)
        self.interviewer = Interviewer(Writer(banks, Dealer(random), random), random)
        self.relations = sorted(banks.relations)

    def draw(self, sample_id: str, types: Sequence[Sequence[PiiType]]) -> Commission:
        for _ in range(_TRIES):
            try:
                commission = self._attempt(sample_id, types)
            except Unresolvable:
                continue
            if commission and is_sound(commission.profiles, commission.relation):
                return commission
        raise RuntimeError(f"{sample_id}: no profile was sound in {_TRIES} attempts")

    def _attempt(self, sample_id: str, types: Sequence[Sequence[PiiType]]) -> Commission | None:
        weights = SINGLE_REGISTERS if self.plan.people == 1 else PAIR_REGISTERS
        register = self.random.choices(list(weights), list(weights.values()))[0]
        alias = takes_alias(register)
        relation = None
        people: tuple[Profile, ...]
        if self.plan.people == 1:
            people = (self.census.single(types[0], alias=alias),)
        else:
            relation = RELATIONS[self.random.choice(self.relations)]
            people = self.census.pair((types[0], types[1]), relation, alias=alias)
        profiles = {profile.id: profile for profile in people}
        chosen = self._choose_needed(profiles)
        if chosen is None:
            return None
        scenario, needs = chosen
        # Longer lists of facts make longer texts, though not in proportion.
        facts = sum(len(profile.facts) for profile in people)
        share = facts * self.plan.size / sum(self.plan.types.values())
        return Commission(
            id=sample_id,
            register=register,
            profiles=profiles,
            relation=relation,
            chars=round(self.plan.chars * (0.45 + 0.55 * share) * self.random.uniform(0.8, 1.2)),
            scenario=scenario,
            needs=needs,
            asker=self.random.choice(("", *profiles)),
        )

    def _choose_needed(
        self, profiles: Mapping[str, Profile]
    ) -> tuple[str, tuple[Needed, ...]] | None:
        sizes = self.plan.needs
        count = self.random.choices(list(sizes), list(sizes.values()))[0]
        facts = askable(profiles)
        avoid: frozenset[Needed] = frozenset()
        if len(profiles) > 1 and (count == 1 or self.random.random() < _ONE_PERSON_SHARE):
            subject = self.random.choice(sorted(profiles))
            avoid = frozenset(fact for fact in facts if fact[0] != subject)
        return self.interviewer.choose(facts, count, avoid)


def is_sound(profiles: Mapping[str, Profile], relation: Relation | None) -> bool:
    """Whether values can be told apart by themselves, and the checker accepts them.

    A value that stands for two facts could be annotated only by understanding the text.
    """
    shared = relation.shared if relation else ()
    values = [
        (subject if (fact.category, fact.facet) not in shared else "", fact)
        for subject, profile in profiles.items()
        for fact in profile.facts
    ]
    texts = {fact.value for _, fact in values}
    if len(texts) < len(set(values)):
        return False
    listing = "\n".join(sorted(texts))
    subjects = annotate(find_mentions(listing, profiles), profiles)
    meta = {"relation": relation.name} if relation else {}
    return not sample_problems(Sample("profile", listing, None, subjects, (), meta))
