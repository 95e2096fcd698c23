"""Commissions for writers: people with facts, a voice, a length, and the queries to write.

A commission depends only on the seed, the set and its number, so that it can be drawn again to
check the written text. Drawing people and values without conflicts is steps 1 and 2 of the paper's
construction; the writer does steps 3 and 4.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cache
from itertools import chain
from math import prod
from random import Random
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
"""How a query may refer to what it needs."""

FREE: Final = frozenset(
    {
        *CATEGORIES[PiiType.ORG],
        *("City/Region", "Landmark", "Nationality", "Ethnicity", "Race", "Religious Belief"),
        *("Political Affiliation", "Education Level", "Academic Degree", "Physical Features"),
        *("Medical Condition", "Disability Status"),
    }
)
"""Categories whose values the writer invents (in the paper, a language model)."""

# Limits on the number of facts of a person, without the name.
_MIN_FACTS: Final = 3
_MAX_FACTS: Final = 15
_ATTEMPTS: Final = 200
_ALIAS_SHARE: Final = 0.15
_REGISTERS_OFFERED: Final = 5
# By kind of writer. Forms and reports mostly use the paper's formats, people seldom; overall, half
# of the texts do.
_PAPER_SHARE: Final = {"desk": 0.9, "own": 0.3, "near": 0.3}

# By number of people: shares of the numbers of related entities. They give the paper's means, 1.95
# and 2.06, although queries about people with few facts need fewer.
_NEEDS: Final = {1: {1: 0.22, 2: 0.53, 3: 0.25}, 2: {1: 0.2, 2: 0.54, 3: 0.26}}
# By number of people: the paper's mean lengths.
_CHARS: Final = {1: 893, 2: 653}
_QUERY_CHARS: Final = {1: 211, 2: 236}

_WRITER_TEXTS: Final = {
    "own": "the person of the text, or one of the two, types it",
    "desk": "somebody who deals with them for a living types it",
    "near": "somebody near to them types it, or tells it",
}
_FORM_TEXTS: Final = {
    "paper": "dates, times, durations, amounts, measures and phone numbers exactly as below",
    "free": "dates, times, durations, amounts, measures and phone numbers in other forms that suit",
}


@dataclass(frozen=True, slots=True)
class Order:
    """A set of `size` descriptions to write.

    Attributes:
        people: subjects per description, 1 or 2.
        queries: queries per description.
        rounds: rounds of equal size in which the set is written. Each is dealt by itself, so that
            a further round leaves the commissions of the earlier ones as they were.
    """

    name: str
    split: Split
    people: int
    size: int
    queries: int
    rounds: int = 1

    @property
    def round_size(self) -> int:
        """Number of descriptions in a round."""
        return self.size // self.rounds

    @property
    def round_types(self) -> Mapping[PiiType, int]:
        """Type to its number of entities in a round, in the paper's proportions."""
        paper = published_statistics()["single" if self.people == 1 else "multi"]
        return {
            pii_type: round(count * self.round_size / paper.samples)
            for pii_type, count in paper.types.items()
        }


ORDERS: Final[Mapping[str, Order]] = {
    order.name: order
    for order in (
        Order("single", "test", people=1, size=1214, queries=1),
        Order("multi", "test", people=2, size=1228, queries=1),
        Order("train-single", "train", people=1, size=390, queries=2),
        Order("train-multi", "train", people=2, size=390, queries=2),
        Order("train-more-single", "train", people=1, size=480, queries=4, rounds=4),
        Order("train-more-multi", "train", people=2, size=1080, queries=4, rounds=3),
        Order("dev-single", "train", people=1, size=60, queries=2),
        Order("dev-multi", "train", people=2, size=60, queries=2),
    )
}


@dataclass(frozen=True, slots=True)
class CommissionedQuery:
    """A query to write: `needs` is the number of related entities, `domain` a suggestion."""

    needs: int
    reference: str
    domain: str
    chars: int


@dataclass(frozen=True, slots=True)
class Commission:
    """A description to write, with its queries.

    Attributes:
        profiles: subject id to person.
        facts: tag to fact, such as "A3" to the third of person A; "A1" is the name.
        spares: tag to the alternative values of its fact.
        writer: kind of writer, one of `pools.WRITERS`; `voice` describes the writer.
        theme: topic of the text, see `pools.Theme`.
        registers: kinds of text that the writer can choose from.
        form: format of dates, amounts and measures, "paper" or "free".
        chars: length of the description.
    """

    id: str
    profiles: Mapping[str, Profile]
    facts: Mapping[str, Fact]
    relation: Relation | None
    spares: Mapping[str, tuple[str, ...]]
    writer: str
    voice: str
    theme: str
    registers: tuple[str, ...]
    form: str
    chars: int
    queries: tuple[CommissionedQuery, ...]

    def allowed(self, tag: str) -> tuple[str, ...]:
        """Return the allowed values of a fact: the drawn one and its alternatives."""
        return (self.facts[tag].value, *self.spares.get(tag, ()))


def commission(order: Order, number: int) -> Commission:
    """Draw the commission with a number, from 1."""
    earlier, index = divmod(number - 1, order.round_size)
    plan = _plan(order.name, earlier)
    types = plan.types[index * order.people : (index + 1) * order.people]
    writer = plan.writers[index]
    random = Random(f"{SEED}/{order.name}/{number}")
    voices = load_voices()
    theme = _theme(voices, types, random)
    profiles, relation = _people(order, types, voices.themes[theme].facts, random)
    facts = {
        f"{subject}{place}": fact
        for subject, profile in profiles.items()
        for place, fact in enumerate(profile.facts, start=1)
    }
    facts_to_mean = len(facts) * order.round_size / sum(order.round_types.values())
    person = random.choice(voices.people_of(writer, theme))
    voice = f"{person}; {random.choice(voices.devices)}; {random.choice(voices.manners)}"
    queries = tuple(
        CommissionedQuery(
            needs=min(plan.needs[place], (len(facts) - order.people) // 2),
            reference=plan.references[place],
            domain=plan.domains[place],
            chars=min(max(round(random.gauss(_QUERY_CHARS[order.people], 55)), 90), 390),
        )
        for place in range(index * order.queries, (index + 1) * order.queries)
    )
    return Commission(
        id=f"{order.name}-{number:04d}",
        profiles=profiles,
        facts=facts,
        relation=relation,
        spares=_spares(facts, profiles),
        writer=writer,
        voice=voice,
        theme=theme,
        registers=plan.registers[index],
        form="paper" if random.random() < _PAPER_SHARE[writer] else "free",
        # More facts make longer texts, but not in proportion.
        chars=round(
            _CHARS[order.people] * (0.45 + 0.55 * facts_to_mean) * random.uniform(0.8, 1.2)
        ),
        queries=queries,
    )


@dataclass(frozen=True, slots=True)
class _Plan:
    """What is dealt over a whole round of a set, so that its shares are exact.

    Attributes:
        types: of each person, the types of the facts without the name.
        writers: of each description; likewise the registers.
        needs: of each query, the number of related entities; likewise the references and domains.
    """

    types: Sequence[Sequence[PiiType]]
    writers: Sequence[str]
    registers: Sequence[tuple[str, ...]]
    needs: Sequence[int]
    references: Sequence[str]
    domains: Sequence[str]


@cache
def _plan(name: str, earlier: int) -> _Plan:
    """Deal the round that follows `earlier` rounds."""
    order, voices = ORDERS[name], load_voices()
    size = order.round_size
    random = Random(f"{SEED}/{name}/round {earlier + 1}" if earlier else f"{SEED}/{name}")
    queries = size * order.queries
    writers = deal(WRITERS, size, random)
    needs: list[int] = []
    for related, share in _NEEDS[order.people].items():
        needs += [related] * round(queries * share)
    needs += [2] * (queries - len(needs))
    random.shuffle(needs)
    # Drawn in this order.
    return _Plan(
        types=allot_types(size * order.people, order.round_types, random),
        writers=writers,
        registers=_offer_registers(voices, order.people, writers, random),
        needs=needs,
        references=deal(REFERENCES, queries, random),
        domains=deal(voices.domains, queries, random),
    )


def allot_types(people: int, counts: Mapping[PiiType, int], random: Random) -> list[list[PiiType]]:
    """Deal types to a number of people so that every count is met exactly; PER is ignored.

    Returns:
        For each person the types of its 3 to 15 entities except the name, none more often than
        the type has categories.
    """
    remaining: Counter[PiiType] = Counter(counts)
    del remaining[PiiType.PER]
    hands: list[Counter[PiiType]] = []
    for size in _sizes(people, remaining.total(), random):
        hand: Counter[PiiType] = Counter()
        for _ in range(size):
            available = [pii_type for pii_type, count in remaining.items() if count > 0]
            possible = [pii_type for pii_type in available if _has_room(hand, pii_type)]
            if possible:
                # Prefer types that this person has few of and that many remain of.
                weights = [remaining[pii_type] / (1 + 2 * hand[pii_type]) for pii_type in possible]
                dealt = random.choices(possible, weights)[0]
                remaining[dealt] -= 1
            else:
                remaining[available[0]] -= 1
                dealt = _exchange(hands, available[0], hand, random)
            hand[dealt] += 1
        hands.append(hand)
    return [list(hand.elements()) for hand in hands]


def _exchange(
    hands: list[Counter[PiiType]], unwanted: PiiType, hand: Counter[PiiType], random: Random
) -> PiiType:
    """Give `unwanted` to an earlier person; return a type of theirs that `hand` has room for."""
    while True:
        other = random.choice(hands)
        for pii_type in other:
            if other[pii_type] > 0 and _has_room(other, unwanted) and _has_room(hand, pii_type):
                other[pii_type] -= 1
                other[unwanted] += 1
                return pii_type


def _has_room(hand: Counter[PiiType], pii_type: PiiType) -> bool:
    return hand[pii_type] < len(CATEGORIES[pii_type])


def _sizes(people: int, total: int, random: Random) -> list[int]:
    """Draw the number of entities of each person, without the name, with the sum `total`."""
    mean = total / people
    sizes = [
        min(max(round(random.gauss(mean, 1.7)), _MIN_FACTS), _MAX_FACTS) for _ in range(people)
    ]
    while sum(sizes) != total:
        step = 1 if sum(sizes) < total else -1
        index = random.randrange(people)
        if _MIN_FACTS <= sizes[index] + step <= _MAX_FACTS:
            sizes[index] += step
    return sizes


def deal(items: Sequence[_Item], size: int, random: Random) -> list[_Item]:
    """Return `size` items in random order; the counts of two items differ by at most one."""
    deck = [items[number % len(items)] for number in range(size)]
    random.shuffle(deck)
    return deck


def _offer_registers(
    voices: Voices, people: int, writers: Sequence[str], random: Random
) -> list[tuple[str, ...]]:
    """Choose kinds of text for each writer, preferring those that were offered least."""
    times_offered = dict.fromkeys(voices.registers, 0)
    offers: list[tuple[str, ...]] = []
    for writer in writers:
        possible = list(voices.registers_of(writer, people))
        random.shuffle(possible)
        possible.sort(key=times_offered.__getitem__)
        offer = tuple(possible[:_REGISTERS_OFFERED])
        for register in offer:
            times_offered[register] += 1
        offers.append(offer)
    return offers


def _theme(voices: Voices, types: Sequence[Sequence[PiiType]], random: Random) -> str:
    """Draw a theme that suits the types, such as a financial one for many amounts."""
    relevant = [each for each in chain(*types) if each is not PiiType.DATETIME]
    weights = [
        prod(_fit(theme, pii_type) for pii_type in relevant) ** (1 / len(types))
        for theme in voices.themes.values()
    ]
    return random.choices(list(voices.themes), weights)[0]


def _fit(theme: Theme, pii_type: PiiType) -> float:
    """Return the share of the type's categories that suit the theme, plus a minimum."""
    categories = CATEGORIES[pii_type]
    return 0.1 + sum(category in theme.facts for category in categories) / len(categories)


def _people(
    order: Order,
    types: Sequence[Sequence[PiiType]],
    favoured: frozenset[str],
    random: Random,
) -> tuple[dict[str, Profile], Relation | None]:
    census = Census(load_pools(order.split), random, favoured)
    for _ in range(_ATTEMPTS):
        alias = random.random() < _ALIAS_SHARE
        try:
            if order.people == 1:
                return {"A": census.single(types[0], alias=alias)}, None
            relation = RELATIONS[random.choice(sorted(RELATIONS))]
            a, b = census.pair((types[0], types[1]), relation, alias=alias)
        except Unresolvable:
            continue
        return {"A": a, "B": b}, relation
    raise RuntimeError(f"{order.name}: no people without conflicts in {_ATTEMPTS} attempts")


def _spares(
    facts: Mapping[str, Fact], profiles: Mapping[str, Profile]
) -> dict[str, tuple[str, ...]]:
    """Draw alternative values of the facts that are not free, by tag: two of a name, else one."""
    spares: dict[str, tuple[str, ...]] = {}
    for tag, fact in facts.items():
        if fact.category not in FREE:
            count = 2 if TYPE_OF_CATEGORY[fact.category] is PiiType.PER else 1
            draw = profiles[tag[0]].draw
            values = [draw_value(fact.category, fact.facet, draw) for _ in range(count)]
            spares[tag] = tuple(dict.fromkeys(values))
    return spares


def commission_sheet(order: Order, portion: int) -> str:
    """Return the text of the commissions in a portion, from 1."""
    numbers = numbers_of(portion, order.size)
    return "\n".join(format_commission(commission(order, number)) for number in numbers)


def numbers_of(portion: int, size: int) -> range:
    """Return the numbers in a portion of a set of `size` commissions; both count from 1."""
    return range((portion - 1) * PORTION + 1, min(portion * PORTION, size) + 1)


def format_commission(brief: Commission) -> str:
    """Return the text of a commission for a writer."""
    least, most = round(brief.chars * 0.85), round(brief.chars * 1.15)
    lines = [
        f"=== {brief.id}",
        f"voice: {brief.voice} ({_WRITER_TEXTS[brief.writer]})",
        f"matter: {brief.theme}",
        f"kind of text, for example: {', '.join(brief.registers)}",
        f"forms: {_FORM_TEXTS[brief.form]}",
        f"length: {brief.chars} characters ({least} to {most})",
    ]
    if brief.relation:
        lines.append(f"relation: {brief.relation.name} (A first)")
    for subject, profile in brief.profiles.items():
        draw = profile.draw
        home = f"{draw.country.name}, for example in {draw.city.name}"
        lines.append(f"{subject}: {draw.pronoun}; lives in {home}")
    for tag, fact in brief.facts.items():
        if fact.category in FREE:
            lines.append(f"  {tag} {fact.category}: yours")
            continue
        about = f" (for example {fact.facet})" if fact.facet else ""
        alternatives = ", ".join(brief.spares[tag])
        lines.append(f"  {tag} {fact.category}: {fact.value}{about} [or: {alternatives}]")
    lines += [
        f"query: needs {query.needs}; reference {query.reference}; about {query.domain}; "
        f"about {query.chars} characters"
        for query in brief.queries
    ]
    return "\n".join(lines) + "\n"
