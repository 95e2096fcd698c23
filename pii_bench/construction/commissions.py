"""Commissions for writers: people with facts, a voice, a length, and the queries to write.

A commission depends only on the seed, the set and its number, so that it can be drawn again to
check the written text. Drawing people and values without conflicts is steps 1 and 2 of the paper's
construction; the writer does steps 3 and 4.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cache
from math import prod
from random import Random
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeVar

from pii_bench.construction.people import Census, Unresolvable
from pii_bench.construction.pools import WRITERS, Theme, Voices, load_pools, load_voices
from pii_bench.construction.rules import RELATIONS
from pii_bench.construction.values import draw_value
from pii_bench.datasets.statistics import published_statistics
from pii_bench.taxonomy import CATEGORIES, TYPE_OF_CATEGORY, PiiType

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pii_bench.construction.people import Fact, Profile
    from pii_bench.construction.pools import Split
    from pii_bench.construction.rules import Relation

_Item = TypeVar("_Item")

SEED: Final = "pii_bench 2"
"""The random seed of this version of the data."""

PORTION: Final = 12
"""The number of commissions in a file."""

REFERENCES: Final = ("explicit", "implied", "contrast")

FREE: Final = frozenset(
    {
        *CATEGORIES[PiiType.ORG],
        *("City/Region", "Landmark", "Nationality", "Ethnicity", "Race", "Religious Belief"),
        *("Political Affiliation", "Education Level", "Academic Degree", "Physical Features"),
        *("Medical Condition", "Disability Status"),
    }
)
"""Categories whose values the writer invents (in the paper, a language model)."""

# Facts of a person, without the name.
_FEWEST: Final = 3
_MOST: Final = 15
_SPARES: Final = 2
_TRIES: Final = 200
_ALIAS_SHARE: Final = 0.15
_OFFERED: Final = 5
# Forms and reports mostly use the paper's formats, people seldom; overall, half of the texts do.
_PAPER_SHARE: Final = {"desk": 0.9, "own": 0.3, "near": 0.3}

# Shares of the numbers of related entities. They give the paper's means, 1.95 and 2.06, although
# queries about people with few facts need fewer.
_NEEDS: Final = {1: {1: 0.22, 2: 0.53, 3: 0.25}, 2: {1: 0.2, 2: 0.54, 3: 0.26}}
_CHARS: Final = {1: 893, 2: 653}
_QUERY_CHARS: Final = {1: 211, 2: 236}


@dataclass(frozen=True, slots=True)
class Order:
    """A set of descriptions to write.

    Attributes:
        people: subjects per description, 1 or 2.
        size: number of descriptions.
        queries: queries per description.
    """

    name: str
    split: Split
    people: int
    size: int
    queries: int

    @property
    def types(self) -> Mapping[PiiType, int]:
        """Type to its number of entities in the set, in the paper's proportions."""
        paper = published_statistics()["single" if self.people == 1 else "multi"]
        return {
            pii_type: round(n * self.size / paper.samples) for pii_type, n in paper.types.items()
        }


ORDERS: Final[Mapping[str, Order]] = MappingProxyType(
    {
        order.name: order
        for order in (
            Order("single", "test", 1, 1214, 1),
            Order("multi", "test", 2, 1228, 1),
            Order("train-single", "train", 1, 390, 2),
            Order("train-multi", "train", 2, 390, 2),
            Order("dev-single", "train", 1, 60, 2),
            Order("dev-multi", "train", 2, 60, 2),
        )
    }
)


@dataclass(frozen=True, slots=True)
class CommissionedQuery:
    """A query to write.

    Attributes:
        needs: number of related entities.
        domain: the suggested domain.
        chars: length in characters.
    """

    needs: int
    reference: str
    domain: str
    chars: int


@dataclass(frozen=True, slots=True)
class Commission:
    """A description to write, with its queries.

    Attributes:
        id: sample id.
        profiles: subject id to person.
        spares: (subject id, category) to alternative values.
        writer: who types the text, one of `pools.WRITERS`; `voice` describes them.
        theme: topic of the text, see `pools.Theme`.
        registers: kinds of text that the writer can choose from.
        form: format of dates, amounts and measures, "paper" or "free".
        chars: length of the description in characters.
    """

    id: str
    profiles: Mapping[str, Profile]
    relation: Relation | None
    spares: Mapping[tuple[str, str], tuple[str, ...]]
    writer: str
    voice: str
    theme: str
    registers: tuple[str, ...]
    form: str
    chars: int
    queries: tuple[CommissionedQuery, ...]

    @property
    def tags(self) -> dict[str, tuple[str, Fact]]:
        """Tag, such as "A3", to the subject id and the fact; A1 is the name of A."""
        return {
            f"{subject}{number}": (subject, fact)
            for subject, profile in self.profiles.items()
            for number, fact in enumerate(profile.facts, start=1)
        }

    def allowed(self, tag: str) -> tuple[str, ...]:
        """Return the allowed values of a fact: the drawn one and its alternatives."""
        subject, fact = self.tags[tag]
        return (fact.value, *self.spares.get((subject, fact.category), ()))


def commission(order: Order, number: int) -> Commission:
    """Draw the commission with a number, from 1.

    Raises:
        MissingExtraError: If Faker is not installed.
        InputFileError: If a pool or table is invalid.
        RuntimeError: If all attempts to draw people without conflicts fail.
    """
    plan = _plan(order.name)
    random = Random(f"{SEED}/{order.name}/{number}")
    index = number - 1
    types = plan.types[index * order.people : (index + 1) * order.people]
    voices = load_voices()
    theme = _theme(voices, types, random)
    profiles, relation = _people(order, types, voices.themes[theme].facts, random)
    facts = sum(len(profile.facts) for profile in profiles.values())
    share = facts * order.size / plan.entities
    writer = plan.writers[index]
    person = random.choice(voices.people_of(writer, theme))
    voice = f"{person}; {random.choice(voices.devices)}; {random.choice(voices.manners)}"
    queries = tuple(
        CommissionedQuery(
            needs=min(plan.needs[n], (facts - order.people) // 2),
            reference=plan.references[n],
            domain=plan.domains[n],
            chars=min(max(round(random.gauss(_QUERY_CHARS[order.people], 55)), 90), 390),
        )
        for n in range(index * order.queries, (index + 1) * order.queries)
    )
    return Commission(
        id=f"{order.name}-{number:04d}",
        profiles=profiles,
        relation=relation,
        spares=_spares(profiles),
        writer=writer,
        voice=voice,
        theme=theme,
        registers=plan.registers[index],
        form="paper" if random.random() < _PAPER_SHARE[writer] else "free",
        # More facts make longer texts, but not in proportion.
        chars=round(_CHARS[order.people] * (0.45 + 0.55 * share) * random.uniform(0.8, 1.2)),
        queries=queries,
    )


@dataclass(frozen=True, slots=True)
class _Plan:
    """Values dealt over a whole set, so that their shares are exact.

    Attributes:
        entities: number of entities in the set.
    """

    entities: int
    types: Sequence[Sequence[PiiType]]
    writers: Sequence[str]
    registers: Sequence[tuple[str, ...]]
    needs: Sequence[int]
    references: Sequence[str]
    domains: Sequence[str]


@cache
def _plan(name: str) -> _Plan:
    order, voices = ORDERS[name], load_voices()
    random = Random(f"{SEED}/{name}")
    queries = order.size * order.queries
    writers = deal(WRITERS, order.size, random)
    sizes = [
        size for size, share in _NEEDS[order.people].items() for _ in range(round(queries * share))
    ]
    sizes += [2] * (queries - len(sizes))
    random.shuffle(sizes)
    return _Plan(
        entities=sum(order.types.values()),
        types=allot_types(order.size * order.people, order.types, random),
        writers=writers,
        registers=_offers(voices, order.people, writers, random),
        needs=sizes[:queries],
        references=deal(REFERENCES, queries, random),
        domains=deal(voices.domains, queries, random),
    )


def allot_types(people: int, counts: Mapping[PiiType, int], random: Random) -> list[list[PiiType]]:
    """Deal types to people so that every count is met exactly.

    Args:
        people: number of subjects.
        counts: type to its number of entities over all subjects; PER is ignored.
        random: source of randomness.

    Returns:
        For each subject the types of its 3 to 15 entities except the name, none more often than
        the type has categories.
    """
    remaining: Counter[PiiType] = Counter(counts)
    del remaining[PiiType.PER]
    sizes = _sizes(people, remaining.total(), random)
    hands: list[Counter[PiiType]] = []
    for size in sizes:
        hand: Counter[PiiType] = Counter()
        for _ in range(size):
            chosen = _draw(remaining, hand, random)
            if chosen is not None:
                remaining[chosen] -= 1
            else:
                # This person has no room for any remaining type: exchange with an earlier person.
                left = next(t for t in remaining if remaining[t] > 0)
                remaining[left] -= 1
                chosen = _exchange(hands, left, hand, random)
            hand[chosen] += 1
        hands.append(hand)
    return [list(hand.elements()) for hand in hands]


def _draw(remaining: Counter[PiiType], hand: Counter[PiiType], random: Random) -> PiiType | None:
    possible = [t for t in remaining if remaining[t] > 0 and _has_room(hand, t)]
    if not possible:
        return None
    # Prefer types that this person has few of and that many remain of.
    return random.choices(possible, [remaining[t] / (1 + 2 * hand[t]) for t in possible])[0]


def _exchange(
    hands: list[Counter[PiiType]], left: PiiType, hand: Counter[PiiType], random: Random
) -> PiiType:
    """Give `left` to another person in return for a type that `hand` has room for; return that."""
    while True:
        other = random.choice(hands)
        for returned in other:
            if other[returned] > 0 and _has_room(other, left) and _has_room(hand, returned):
                other[returned] -= 1
                other[left] += 1
                return returned


def _has_room(hand: Counter[PiiType], pii_type: PiiType) -> bool:
    return hand[pii_type] < len(CATEGORIES[pii_type])


def _sizes(people: int, total: int, random: Random) -> list[int]:
    """Draw the number of entities of each person, without the name, with the sum `total`."""
    mean = total / people
    sizes = [min(max(round(random.gauss(mean, 1.7)), _FEWEST), _MOST) for _ in range(people)]
    while (excess := sum(sizes) - total) != 0:
        step = -1 if excess > 0 else 1
        index = random.randrange(people)
        if _FEWEST <= sizes[index] + step <= _MOST:
            sizes[index] += step
    return sizes


def deal(items: Sequence[_Item], size: int, random: Random) -> list[_Item]:
    """Return `size` items in random order, each item equally often, up to one."""
    deck = [items[number % len(items)] for number in range(size)]
    random.shuffle(deck)
    return deck


def _offers(
    voices: Voices, people: int, writers: Sequence[str], random: Random
) -> list[tuple[str, ...]]:
    """Choose the kinds of text for each writer, preferring those that were offered least."""
    offered = dict.fromkeys(voices.registers, 0)
    offers: list[tuple[str, ...]] = []
    for writer in writers:
        possible = list(voices.registers_of(writer, people))
        random.shuffle(possible)
        chosen = tuple(sorted(possible, key=offered.__getitem__)[:_OFFERED])
        for name in chosen:
            offered[name] += 1
        offers.append(chosen)
    return offers


def _theme(voices: Voices, types: Sequence[Sequence[PiiType]], random: Random) -> str:
    """Draw a theme that suits the types, such as a financial one for many amounts."""
    relevant = [t for own in types for t in own if t is not PiiType.DATETIME]
    weights = {
        name: prod(_fit(theme, pii_type) for pii_type in relevant) ** (1 / len(types))
        for name, theme in voices.themes.items()
    }
    return random.choices(list(weights), list(weights.values()))[0]


def _fit(theme: Theme, pii_type: PiiType) -> float:
    categories = CATEGORIES[pii_type]
    return 0.1 + sum(name in theme.facts for name in categories) / len(categories)


def _people(
    order: Order,
    types: Sequence[Sequence[PiiType]],
    favoured: frozenset[str],
    random: Random,
) -> tuple[dict[str, Profile], Relation | None]:
    census = Census(load_pools(order.split), random, favoured)
    for _ in range(_TRIES):
        alias = random.random() < _ALIAS_SHARE
        relation = None
        people: tuple[Profile, ...]
        try:
            if order.people == 1:
                people = (census.single(types[0], alias=alias),)
            else:
                relation = RELATIONS[random.choice(sorted(RELATIONS))]
                people = census.pair((types[0], types[1]), relation, alias=alias)
        except Unresolvable:
            continue
        return {profile.id: profile for profile in people}, relation
    raise RuntimeError(f"{order.name}: no people without conflicts in {_TRIES} attempts")


def _spares(profiles: Mapping[str, Profile]) -> dict[tuple[str, str], tuple[str, ...]]:
    spares: dict[tuple[str, str], tuple[str, ...]] = {}
    for subject, profile in profiles.items():
        for fact in profile.facts:
            if fact.category in FREE:
                continue
            count = _SPARES if TYPE_OF_CATEGORY[fact.category] is PiiType.PER else 1
            drawn = [draw_value(fact.category, fact.facet, profile.draw) for _ in range(count)]
            spares[subject, fact.category] = tuple(dict.fromkeys(drawn))
    return spares


def sheet(order: Order, portion: int) -> str:
    """Return the text of the commissions in a portion, from 1."""
    return "\n".join(
        format_commission(commission(order, n)) for n in numbers_of(portion, order.size)
    )


def numbers_of(portion: int, size: int) -> range:
    """Return the numbers in a portion of a set of `size` commissions; both count from 1."""
    return range((portion - 1) * PORTION + 1, min(portion * PORTION, size) + 1)


_WRITER: Final = {
    "own": "the person of the text, or one of the two, types it",
    "desk": "somebody who deals with them for a living types it",
    "near": "somebody near to them types it, or tells it",
}
_FORMS: Final = {
    "paper": "dates, times, durations, amounts, measures and phone numbers exactly as below",
    "free": "dates, times, durations, amounts, measures and phone numbers in other forms that suit",
}


def format_commission(brief: Commission) -> str:
    """Return the text of a commission for a writer."""
    least, most = round(brief.chars * 0.85), round(brief.chars * 1.15)
    lines = [
        f"=== {brief.id}",
        f"voice: {brief.voice} ({_WRITER[brief.writer]})",
        f"matter: {brief.theme}",
        f"kind of text, for example: {', '.join(brief.registers)}",
        f"forms: {_FORMS[brief.form]}",
        f"length: {brief.chars} characters ({least} to {most})",
    ]
    if brief.relation:
        lines.append(f"relation: {brief.relation.name} (A first)")
    for subject, profile in brief.profiles.items():
        draw = profile.draw
        home = f"{draw.country.name}, for example in {draw.city.name}"
        lines.append(f"{subject}: {draw.pronoun}; lives in {home}")
    for tag, (subject, fact) in brief.tags.items():
        if fact.category in FREE:
            lines.append(f"  {tag} {fact.category}: yours")
            continue
        spares = ", ".join(brief.spares.get((subject, fact.category), ()))
        about = f" (for example {fact.facet})" if fact.facet else ""
        lines.append(f"  {tag} {fact.category}: {fact.value}{about} [or: {spares}]")
    lines += [
        f"query: needs {q.needs}; reference {q.reference}; about {q.domain}; "
        f"about {q.chars} characters"
        for q in brief.queries
    ]
    return "\n".join(lines) + "\n"
