"""Building a set: people, texts and queries, each sample checked before it is kept."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any, Final

from pii_bench.construction.allot import allot_types
from pii_bench.construction.ask import Interviewer, Needed, Question, viewpoint
from pii_bench.construction.describe import (
    PAIR_REGISTERS,
    SINGLE_REGISTERS,
    Describer,
    takes_alias,
)
from pii_bench.construction.grammar import Dealer, load_banks
from pii_bench.construction.likeness import Memory
from pii_bench.construction.names import Names
from pii_bench.construction.pools import load_pools
from pii_bench.construction.profiles import Census, Unresolvable
from pii_bench.construction.relations import RELATIONS
from pii_bench.construction.sentences import Writer
from pii_bench.construction.text import flatten
from pii_bench.datasets.sample import Entity, Related, Sample, Subject
from pii_bench.taxonomy import TYPE_OF_CATEGORY, PiiType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pii_bench.construction.people import Draft, Mention, Profile
    from pii_bench.construction.pools import Split

# Of so many drafts the one of the right length is kept; two people leave less room to choose.
_CANDIDATES: Final = {1: 2, 2: 8}
_TRIES: Final = 60


@dataclass(frozen=True, slots=True)
class Plan:
    """What a set is to be.

    Attributes:
        name: of the set, and of its ids.
        people: subjects per description, 1 or 2.
        size: samples.
        types: type to number of entities over the set.
        chars: mean length of a description, in characters.
        needs: size of E_q to its weight.
    """

    name: str
    split: Split
    people: int
    size: int
    types: Mapping[PiiType, int]
    chars: int
    needs: Mapping[int, float]


@dataclass(frozen=True, slots=True)
class Built:
    """A sample, and what it was made of."""

    sample: Sample
    draft: Draft
    profiles: Mapping[str, Profile]
    question: Question


class SampleFault(Exception):  # noqa: N818 - an attempt that is not kept, nobody's error
    """A draft that must not be kept; the message says why."""


class Builder:
    """Builds the sets of one split.

    Args:
        split: whose banks and pools.
        seed: the same seed gives the same sets.
        faults: the checks that a sample must pass, each yielding what is wrong.
    """

    def __init__(self, split: Split, seed: str, faults: Callable[[Sample], Sequence[str]]) -> None:
        self.random = Random(f"{seed}/{split}")
        self.faults = faults
        banks, pools = load_banks(split), load_pools(split)
        self.writer = Writer(banks, Dealer(self.random), self.random)
        self.describer = Describer(self.writer, self.random)
        self.interviewer = Interviewer(self.writer, self.random)
        self.census = Census(pools, Names(pools), self.random)
        self._memory = Memory()
        self.dropped: dict[str, int] = {}

    def build(self, plan: Plan) -> Iterator[Built]:
        """Yield the samples of a set in order."""
        dealt = allot_types(plan.size * plan.people, plan.types, self.random)
        for number in range(plan.size):
            types = dealt[number * plan.people : (number + 1) * plan.people]
            yield self._sample(plan, f"{plan.name}-{number + 1:04d}", types)

    def _sample(self, plan: Plan, sample_id: str, types: list[list[PiiType]]) -> Built:
        # Drawn once, so that attempts which fail for many needs do not make few the rule.
        count = self.draw_count(plan.needs)
        for number in range(_TRIES):
            if number == _TRIES // 2:
                # These types may have no scenario that needs so many of them.
                count = 1
            try:
                return self._attempt(plan, sample_id, types, count)
            except (Unresolvable, SampleFault, LookupError) as fault:
                reason = str(fault) or "conflicts"
                self.dropped[reason] = self.dropped.get(reason, 0) + 1
        raise RuntimeError(f"{sample_id}: no attempt was kept in {_TRIES}")

    def draw_count(self, needs: Mapping[int, float]) -> int:
        """A size of E_q."""
        return self.random.choices(list(needs), list(needs.values()))[0]

    def _attempt(self, plan: Plan, sample_id: str, types: list[list[PiiType]], count: int) -> Built:
        random = self.random
        mean = sum(len(own) for own in types) + plan.people
        share = mean * plan.size / sum(plan.types.values())
        # Longer lists of facts make longer texts, though not in proportion.
        target = round(plan.chars * (0.45 + 0.55 * share) * random.uniform(0.8, 1.2))
        weights = SINGLE_REGISTERS if plan.people == 1 else PAIR_REGISTERS
        register = random.choices(list(weights), list(weights.values()))[0]
        alias = takes_alias(register)
        drafts: list[Draft]
        people: tuple[Profile, ...]
        if plan.people == 1:
            person = self.census.single(types[0], alias=alias)
            people = (person,)
            drafts = [
                self.describer.single(person, register, target) for _ in range(_CANDIDATES[1])
            ]
        else:
            relation = RELATIONS[random.choice(sorted(self.writer.banks.relations))]
            first, second = self.census.pair((types[0], types[1]), relation, alias=alias)
            people = (first, second)
            drafts = [
                self.describer.pair(first, second, relation, register, target, tries=_CANDIDATES[2])
            ]
        draft = min(drafts, key=lambda d: abs(len(description_of(d)) - target))
        profiles = {profile.id: profile for profile in people}
        question = self.question(draft, profiles, count)
        sample = to_sample(sample_id, draft, profiles, question)
        if faults := self.faults(sample):
            raise SampleFault(faults[0].split(":")[0])
        if not self._memory.keep(sample):
            raise SampleFault("near-duplicate")
        return Built(sample, draft, profiles, question)

    def question(
        self,
        draft: Draft,
        profiles: Mapping[str, Profile],
        count: int,
        avoid: frozenset[Needed] = frozenset(),
    ) -> Question:
        """A query about a draft that needs `count` facts.

        Raises:
            SampleFault: no scenario needs enough of its facts.
        """
        facts = askable(profiles)
        if len(profiles) > 1 and (count == 1 or self.random.random() < 0.65):
            # One person's facts; the other's stand beside them.
            subject = self.random.choice(sorted(profiles))
            avoid |= {fact for fact in facts if fact[0] != subject}
        chosen = self.interviewer.choose(facts, count, avoid)
        if chosen is None:
            raise SampleFault("no scenario fits")
        asker, people = viewpoint(draft, profiles, self.random)
        return self.interviewer.ask(*chosen, profiles, people, asker)


def askable(profiles: Mapping[str, Profile]) -> list[Needed]:
    """Every fact that may be needed: all but names."""
    return [
        (profile.id, fact)
        for profile in profiles.values()
        for fact in profile.facts
        if TYPE_OF_CATEGORY[fact.category] is not PiiType.PER
    ]


def description_of(draft: Draft) -> str:
    """The text of a draft."""
    return flatten(_laid_out(draft))[0]


def to_sample(
    sample_id: str,
    draft: Draft,
    profiles: Mapping[str, Profile],
    question: Question,
    **meta: Any,
) -> Sample:
    """The sample of a draft and a question about it."""
    text, mentions = flatten(_laid_out(draft))
    return Sample(
        id=sample_id,
        description=text,
        query=question.text,
        subjects=annotate(mentions, profiles),
        related=tuple(Related(subject, fact.value) for subject, fact in question.needs),
        meta={
            "register": draft.register,
            **_relation_of(draft),
            "scenario": question.scenario,
            "asker": question.asker or "other",
            **meta,
        },
    )


def _relation_of(draft: Draft) -> dict[str, str]:
    if draft.relation is None:
        return {}
    return {"relation": draft.relation, "relation_kind": RELATIONS[draft.relation].kind}


def annotate(
    mentions: Sequence[tuple[Mention, tuple[int, int]]], profiles: Mapping[str, Profile]
) -> tuple[Subject, ...]:
    """Gold subjects of mentions with their spans, entities in the order of the text."""
    spans: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for mention, span in mentions:
        for subject in mention.subjects:
            spans.setdefault((subject, mention.fact.value), []).append(span)
    return tuple(
        Subject(
            subject,
            tuple(
                Entity(
                    text=fact.value,
                    type=TYPE_OF_CATEGORY[fact.category],
                    category=fact.category,
                    spans=tuple(spans[subject, fact.value]),
                )
                for fact in sorted(profile.facts, key=lambda fact: spans[subject, fact.value][0])
            ),
        )
        for subject, profile in profiles.items()
    )


def _laid_out(draft: Draft) -> Iterator[str | Mention]:
    turns = draft.register in {"transcript", "chat"}
    for number, block in enumerate(draft.blocks):
        if number:
            yield "\n" if turns else "\n\n"
        yield from block
