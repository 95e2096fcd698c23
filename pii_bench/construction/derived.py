"""What is written about recorded texts: twins of some, and conversations that join five."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from random import Random
from typing import TYPE_CHECKING, Final

from pii_bench.construction.commissions import ORDERS, SEED, numbers_of
from pii_bench.construction.marked import OPENING, resolve
from pii_bench.datasets.check.sets import AGAIN
from pii_bench.errors import PiiBenchError
from pii_bench.taxonomy import TYPE_OF_CATEGORY, PiiType

if TYPE_CHECKING:
    import re
    from collections.abc import Mapping

    from pii_bench.construction.marked import Marked, MarkedQuery
    from pii_bench.construction.recorded import Recorded

TWINS_PER_SOURCE: Final = 200
CONVERSATIONS: Final = 200
TWINS: Final = "twins"
TRAIN_TWINS: Final = "train-twins"
TWIN_SETS: Final = (TWINS, TRAIN_TWINS)
TWINNED: Final = "twinned.txt"
"""In the folder of the recorded texts: ids of those that have twins, in order."""

TEMPLATES: Final = ("professional network", "knowledge platform", "community forum")

_TRAIN_ROUNDS: Final = ("train-multi", "train-single", "train-multi")
_JOINED: Final = 5
_ASKED: Final = 3
# The texts of a conversation make up this share of it; greetings and answers are the rest.
_TEXTS_SHARE: Final = 0.86


def twin_sources(recorded: Recorded, name: str = TWINS) -> list[Marked]:
    """The texts that get twins.

    For training these are all, and then those about two people again; for the test 200 of single,
    then 200 of multi. The latter are those listed in the file `TWINNED` where it is there, so that
    no text that is mended later takes the place of one whose twins are written. Else they are
    drawn from the seed.

    A text qualifies when other facts than the needed ones are left for a second query. Of texts
    about two people those come first in which the other person has the same kinds of facts with
    other values.

    Raises:
        PiiBenchError: a set is not complete, or too few of its texts qualify.
    """
    if name == TRAIN_TWINS:
        return [
            own[key] for own in map(recorded.sets.get, _TRAIN_ROUNDS) if own for key in sorted(own)
        ]
    listed = recorded.folder / TWINNED
    if listed.exists():
        return [recorded.find(each) for each in listed.read_text(encoding="utf-8").split()]
    chosen: list[Marked] = []
    for source in ("single", "multi"):
        own = recorded.sets[source]
        if len(own) < ORDERS[source].size:
            raise PiiBenchError(f"{source}: {len(own)} of {ORDERS[source].size} texts are recorded")
        order = Random(f"{SEED}/twins/{source}").sample(sorted(own), len(own))
        fit = [own[key] for key in order if _has_second(own[key])]
        found = sorted(fit, key=lambda marked: not _can_be_turned(marked))[:TWINS_PER_SOURCE]
        if len(found) < TWINS_PER_SOURCE:
            raise PiiBenchError(f"{source}: only {len(found)} texts can have twins")
        chosen += sorted(found, key=lambda marked: marked.id)
    return chosen


def is_second_round(recorded: Recorded, number: int, name: str) -> bool:
    """Whether a text has twins of a lower number already."""
    return name == TRAIN_TWINS and number > sum(
        len(recorded.sets[own]) for own in set(_TRAIN_ROUNDS)
    )


def twin_kinds(source: Marked, name: str = TWINS, *, again: bool = False) -> tuple[str, ...]:
    """The kinds of twins that a text gets.

    For training, a text about two people with facts of one kind gets a pair of queries about
    these, `one` and `other`, instead of a second query about other facts.

    Args:
        source: the text.
        name: of the set of twins.
        again: whether it gets them in the second round.
    """
    if again:
        return tuple(kind + AGAIN for kind in twin_kinds(source, name) if kind != "turned")
    pair = ("one", "other") if name == TRAIN_TWINS and _shares_a_kind(source) else ("second",)
    return (
        *(pair if pair != ("second",) or _has_second(source) else ()),
        "paraphrase",
        *(("turned",) if _can_be_turned(source) else ()),
    )


def _has_second(source: Marked) -> bool:
    facts = source.facts
    left = [tag for tag in facts if tag not in source.queries[0].needs and not _is_name(facts[tag])]
    return len(left) >= 2


def _shares_a_kind(source: Marked) -> bool:
    """Whether two people have a fact of one category with different values."""
    values = resolve(source.text).values
    people: dict[str, dict[str, tuple[str, ...]]] = {}
    for tag, category in source.facts.items():
        if not _is_name(category):
            people.setdefault(tag[0], {})[category] = tuple(values[tag])
    if len(people) < 2:
        return False
    one, other = people["A"], people["B"]
    return any(category in other and other[category] != one[category] for category in one)


def _can_be_turned(source: Marked) -> bool:
    facts = source.facts
    values = resolve(source.text).values
    needs = source.queries[0].needs
    owners = {tag[0] for tag in needs}
    if "relation" not in source.header or len(owners) > 1:
        return False
    others = {facts[tag]: values[tag] for tag in facts if tag[0] not in owners}
    return all(others.get(facts[tag], values[tag]) != values[tag] for tag in needs)


def twin_sheet(recorded: Recorded, portion: int, name: str = TWINS) -> str:
    """The twins of a portion, from 1, for a writer."""
    sources = twin_sources(recorded, name)
    told = []
    for number in numbers_of(portion, len(sources)):
        source = sources[number - 1]
        query = source.queries[0]
        again = is_second_round(recorded, number, name)
        kinds = ", ".join(twin_kinds(source, name, again=again))
        twins = recorded.sets[name].values() if again else ()
        asked = [
            query,
            *(q for twin in twins if twin.header["of"] == source.id for q in twin.queries),
        ]
        related = source.header.get("relation")
        relation = f"relation: {related} (A first)\n" if related else ""
        told.append(
            f"=== {name}-{number:04d}\nof: {source.id}\nwanted: {kinds}\n"
            f"{relation}--- text\n{source.text}\n" + "".join(map(_told_query, asked))
        )
    return "\n".join(told)


def _told_query(query: MarkedQuery) -> str:
    whose = "its own query" if query.kind == "query" else f"its twin {query.kind!r}"
    needs = " ".join(query.needs)
    return (
        f"--- {whose}: {needs} | {query.reference} | {query.domain} | {query.asker}\n{query.text}\n"
    )


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation that is to be written.

    Attributes:
        joined: ids of the five texts.
        texts: of the five, each with the tags of the conversation.
        facts: tag to category.
        values: tag to text.
        asked: letters of the people whom the query is about.
        chars: length, in characters.
    """

    id: str
    template: str
    joined: tuple[str, ...]
    texts: tuple[str, ...]
    facts: Mapping[str, str]
    values: Mapping[str, str]
    asked: tuple[str, ...]
    chars: int


def conversation(recorded: Recorded, number: int) -> Conversation:
    """Draw the conversation of a number, from 1.

    Raises:
        PiiBenchError: a text that it joins is not recorded.
    """
    joined = _joined()[number - 1]
    sources = [recorded.find(sample_id) for sample_id in joined]
    random = Random(f"{SEED}/distract/{number}")
    free = iter("ABCDEFGHIJ")
    people: dict[str, list[str]] = {}
    texts: list[str] = []
    facts: dict[str, str] = {}
    values: dict[str, str] = {}
    chars = 0
    for source in sources:
        own = source.facts
        letters = {letter: next(free) for letter in sorted({tag[0] for tag in own})}
        people[source.id] = list(letters.values())
        new = {tag: letters[tag[0]] + tag[1:] for tag in own}
        found = resolve(source.text)
        chars += len(found.text)
        texts.append(_retagged(source.text, new))
        facts |= {new[tag]: category for tag, category in own.items()}
        values |= {new[tag]: found.values[tag][0] for tag in own}
    asked = [random.choice(people[source.id]) for source in random.sample(sources, _ASKED)]
    return Conversation(
        id=f"distract-{number:04d}",
        template=TEMPLATES[number % len(TEMPLATES)],
        joined=joined,
        texts=tuple(texts),
        facts=facts,
        values=values,
        asked=tuple(asked),
        chars=round(chars / _TEXTS_SHARE),
    )


def conversation_sheets(recorded: Recorded, portion: int) -> str:
    """The conversations of a portion, from 1, for a writer.

    Raises:
        PiiBenchError: a text that one of them joins is not recorded.
    """
    numbers = numbers_of(portion, CONVERSATIONS)
    return "\n".join(_told(conversation(recorded, n)) for n in numbers)


def _told(asked: Conversation) -> str:
    texts = "\n".join(
        f"--- {sample_id}\n{text}"
        for sample_id, text in zip(asked.joined, asked.texts, strict=True)
    )
    facts = "".join(
        f"  {tag} {category}: {asked.values[tag]}\n" for tag, category in asked.facts.items()
    )
    return (
        f"=== {asked.id}\nplace: {asked.template}\nlength: about {asked.chars} characters\n"
        f"query: about {', '.join(asked.asked)}, one after the other; about two facts of each; "
        f"about 860 characters\nfacts:\n{facts}{texts}\n"
    )


@cache
def _joined() -> tuple[tuple[str, ...], ...]:
    """The five texts of each conversation; no text is in two."""
    random = Random(f"{SEED}/distract")
    singles, pairs = (
        iter(random.sample(range(1, ORDERS[name].size + 1), ORDERS[name].size))
        for name in ("single", "multi")
    )
    groups = []
    for number in range(CONVERSATIONS):
        several = 2 + number % 2
        group = [f"single-{next(singles):04d}" for _ in range(_JOINED - several)]
        group += [f"multi-{next(pairs):04d}" for _ in range(several)]
        random.shuffle(group)
        groups.append(tuple(group))
    return tuple(groups)


def _retagged(text: str, new: Mapping[str, str]) -> str:
    def opened(mark: re.Match[str]) -> str:
        return "{" + "+".join(new[tag] for tag in mark[1].split("+")) + "|"

    return OPENING.sub(opened, text)


def _is_name(category: str) -> bool:
    return TYPE_OF_CATEGORY[category] is PiiType.PER
