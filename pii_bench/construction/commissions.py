"""What a writer is asked for: people with their facts, a voice, a length, and what is asked.

A commission follows from the seed, the set and its number alone, so that it can be drawn again
when the text that answers it is accepted. The people, their values and the conflicts between
these are the paper's construction steps 1 and 2; the writer does steps 3 and 4.
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

Item = TypeVar("Item")

SEED: Final = "pii_bench 2"
"""Names the commissions of this version of the data."""

PORTION: Final = 12
"""Commissions in one file."""

REFERENCES: Final = ("explicit", "implied", "contrast")

FREE: Final = frozenset(
    {
        *CATEGORIES[PiiType.ORG],
        *("City/Region", "Landmark", "Nationality", "Ethnicity", "Race", "Religious Belief"),
        *("Political Affiliation", "Education Level", "Academic Degree", "Physical Features"),
        *("Medical Condition", "Disability Status"),
    }
)
"""Categories whose values the writer gives (the paper's table: written by a language model)."""

# Facts of a person beside the name.
_FEWEST: Final = 3
_MOST: Final = 15
_SPARES: Final = 2
_TRIES: Final = 200
_ALIAS_SHARE: Final = 0.15
_OFFERED: Final = 5
# Forms and reports write as the paper does, people seldom: half of all texts.
_PAPER_SHARE: Final = {"desk": 0.9, "own": 0.3, "near": 0.3}

# Shares of the numbers of related entities that give the paper's means, 1.95 and 2.06, where
# people of few facts are asked about fewer.
_NEEDS: Final = {1: {1: 0.22, 2: 0.53, 3: 0.25}, 2: {1: 0.2, 2: 0.54, 3: 0.26}}
_CHARS: Final = {1: 893, 2: 653}
_QUERY_CHARS: Final = {1: 211, 2: 236}


@dataclass(frozen=True, slots=True)
class Order:
    """A set of descriptions to be written.

    Attributes:
        people: subjects per description, 1 or 2.
        size: descriptions.
        queries: per description.
    """

    name: str
    split: Split
    people: int
    size: int
    queries: int

    @property
    def types(self) -> Mapping[PiiType, int]:
        """Type to its number of entities over the set, in the paper's shares."""
        return _types(self.people, self.size)


@cache
def _types(people: int, size: int) -> Mapping[PiiType, int]:
    paper = published_statistics()["single" if people == 1 else "multi"]
    return {pii_type: round(n * size / paper.samples) for pii_type, n in paper.types.items()}


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
class Asked:
    """What a query is to be.

    Attributes:
        needs: number of related entities.
        domain: a suggestion.
        chars: length, in characters.
    """

    needs: int
    reference: str
    domain: str
    chars: int


@dataclass(frozen=True, slots=True)
class Commission:
    """One description, with its queries, that is to be written.

    Attributes:
        id: of the sample.
        profiles: subject id to person.
        spares: (subject id, category) to further values of the same kind.
        writer: kind of who types, one of `pools.WRITERS`; `voice` describes them.
        theme: what the text is about, see `pools.Theme`.
        registers: kinds of text, one of which the writer chooses.
        form: how dates, amounts and measures are written, "paper" or "free".
        chars: length of the description.
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
    asked: tuple[Asked, ...]

    @property
    def tags(self) -> dict[str, tuple[str, Fact]]:
        """The tag of each fact, such as "A3", to the subject and the fact; A1 is A's name."""
        return {
            f"{subject}{number}": (subject, fact)
            for subject, profile in self.profiles.items()
            for number, fact in enumerate(profile.facts, start=1)
        }

    def allowed(self, tag: str) -> tuple[str, ...]:
        """The commissioned value of a fact and its spares."""
        subject, fact = self.tags[tag]
        return (fact.value, *self.spares.get((subject, fact.category), ()))


def commission(order: Order, number: int) -> Commission:
    """Draw the commission of a number, from 1.

    Raises:
        MissingExtraError: Faker is not installed.
        InputFileError: a pool or table is broken.
        RuntimeError: no people without conflicts came in many attempts.
    """
    plan = _plan(order.name)
    random = Random(f"{SEED}/{order.name}/{number}")
    place = number - 1
    types = plan.types[place * order.people : (place + 1) * order.people]
    voices = load_voices()
    theme = _theme(voices, types, random)
    profiles, relation = _people(order, types, voices.themes[theme].facts, random)
    facts = sum(len(profile.facts) for profile in profiles.values())
    share = facts * order.size / sum(order.types.values())
    writer = plan.writers[place]
    who = random.choice(voices.who(writer, theme))
    voice = f"{who}; {random.choice(voices.on)}; {random.choice(voices.manner)}"
    asked = tuple(
        Asked(
            needs=min(plan.needs[place * order.queries + n], (facts - order.people) // 2),
            reference=plan.references[place * order.queries + n],
            domain=plan.domains[place * order.queries + n],
            chars=min(max(round(random.gauss(_QUERY_CHARS[order.people], 55)), 90), 390),
        )
        for n in range(order.queries)
    )
    return Commission(
        id=f"{order.name}-{number:04d}",
        profiles=profiles,
        relation=relation,
        spares=_spares(profiles),
        writer=writer,
        voice=voice,
        theme=theme,
        registers=plan.registers[place],
        form="paper" if random.random() < _PAPER_SHARE[writer] else "free",
        # Longer lists of facts make longer texts, though not in proportion.
        chars=round(_CHARS[order.people] * (0.45 + 0.55 * share) * random.uniform(0.8, 1.2)),
        asked=asked,
    )


@dataclass(frozen=True, slots=True)
class _Plan:
    """What is dealt over a whole set, so that every share is met."""

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
    writers = dealt(WRITERS, order.size, random)
    sizes = [
        size for size, share in _NEEDS[order.people].items() for _ in range(round(queries * share))
    ]
    sizes += [2] * (queries - len(sizes))
    random.shuffle(sizes)
    return _Plan(
        types=allot_types(order.size * order.people, order.types, random),
        writers=writers,
        registers=_offers(voices, order.people, writers, random),
        needs=sizes[:queries],
        references=dealt(REFERENCES, queries, random),
        domains=dealt(voices.domains, queries, random),
    )


def allot_types(people: int, counts: Mapping[PiiType, int], random: Random) -> list[list[PiiType]]:
    """Deal types to people, PER once to each, so that every count is met exactly.

    Args:
        people: how many subjects.
        counts: type to its number of entities over all of them; PER is `people`.
        random: decides.

    Returns:
        Per subject the types of its entities without PER: 3 to 15 of them, none more often
        than it has categories.
    """
    remaining: Counter[PiiType] = Counter(counts)
    del remaining[PiiType.PER]
    sizes = _sizes(people, remaining.total(), random)
    dealt: list[Counter[PiiType]] = []
    for size in sizes:
        own: Counter[PiiType] = Counter()
        for _ in range(size):
            chosen = _draw(remaining, own, random)
            if chosen is None:
                # Only types of which this person has all: somebody before takes one for another.
                left = next(t for t in remaining if remaining[t] > 0)
                chosen = _exchange(dealt, left, own, random)
                remaining[left] -= 1
            else:
                remaining[chosen] -= 1
            own[chosen] += 1
        dealt.append(own)
    return [list(own.elements()) for own in dealt]


def _draw(remaining: Counter[PiiType], own: Counter[PiiType], random: Random) -> PiiType | None:
    possible = [t for t in remaining if remaining[t] > 0 and _has_room(own, t)]
    if not possible:
        return None
    # Types that are rare in this person and plenty in the deck come first.
    return random.choices(possible, [remaining[t] / (1 + 2 * own[t]) for t in possible])[0]


def _exchange(
    dealt: list[Counter[PiiType]], left: PiiType, own: Counter[PiiType], random: Random
) -> PiiType:
    """Give `left` to a person who has room for it, in return for a type that `own` can take."""
    while True:
        other = random.choice(dealt)
        for returned in other:
            if other[returned] > 0 and _has_room(other, left) and _has_room(own, returned):
                other[returned] -= 1
                other[left] += 1
                return returned


def _has_room(own: Counter[PiiType], pii_type: PiiType) -> bool:
    return own[pii_type] < len(CATEGORIES[pii_type])


def _sizes(people: int, total: int, random: Random) -> list[int]:
    """Entities per person without PER, around the mean, summing to the total."""
    mean = total / people
    sizes = [min(max(round(random.gauss(mean, 1.7)), _FEWEST), _MOST) for _ in range(people)]
    while (excess := sum(sizes) - total) != 0:
        step = -1 if excess > 0 else 1
        place = random.randrange(people)
        if _FEWEST <= sizes[place] + step <= _MOST:
            sizes[place] += step
    return sizes


def dealt(items: Sequence[Item], size: int, random: Random) -> list[Item]:
    """Items in turn, as many as `size`, in random order: each about equally often."""
    found = [items[number % len(items)] for number in range(size)]
    random.shuffle(found)
    return found


def _offers(
    voices: Voices, people: int, writers: Sequence[str], random: Random
) -> list[tuple[str, ...]]:
    """Kinds of text for each writer, those first that were offered least."""
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
    """A theme in which facts of these types come up: money matters for many amounts."""
    dealt = [t for own in types for t in own if t is not PiiType.DATETIME]
    weights = {
        name: prod(_fit(theme, pii_type) for pii_type in dealt) ** (1 / len(types))
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
    """The commissions of a portion, from 1, for a writer to read."""
    return "\n".join(told(commission(order, n)) for n in numbers_of(portion, order.size))


def numbers_of(portion: int, size: int) -> range:
    """The numbers, from 1, of a portion, from 1, of a set of this size."""
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


def told(asked: Commission) -> str:
    """A commission for a writer to read."""
    least, most = round(asked.chars * 0.85), round(asked.chars * 1.15)
    lines = [
        f"=== {asked.id}",
        f"voice: {asked.voice} ({_WRITER[asked.writer]})",
        f"matter: {asked.theme}",
        f"kind of text, for example: {', '.join(asked.registers)}",
        f"forms: {_FORMS[asked.form]}",
        f"length: {asked.chars} characters ({least} to {most})",
    ]
    if asked.relation:
        lines.append(f"relation: {asked.relation.name} (A first)")
    for subject, profile in asked.profiles.items():
        draw = profile.draw
        home = f"{draw.country.name}, for example in {draw.city.name}"
        lines.append(f"{subject}: {draw.pronoun}; lives in {home}")
    for tag, (subject, fact) in asked.tags.items():
        if fact.category in FREE:
            lines.append(f"  {tag} {fact.category}: yours")
            continue
        spares = ", ".join(asked.spares.get((subject, fact.category), ()))
        about = f" (for example {fact.facet})" if fact.facet else ""
        lines.append(f"  {tag} {fact.category}: {fact.value}{about} [or: {spares}]")
    lines += [
        f"query: needs {q.needs}; reference {q.reference}; about {q.domain}; "
        f"about {q.chars} characters"
        for q in asked.asked
    ]
    return "\n".join(lines) + "\n"
