"""Commissions based on recorded texts: twins, and conversations that join five texts."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Final

from pii_bench.construction.commissions import ORDERS, SEED, numbers_of
from pii_bench.construction.marked import OPENING, resolve
from pii_bench.datasets.check.sets import LATER
from pii_bench.files import read_text
from pii_bench.taxonomy import TYPE_OF_CATEGORY, PiiType

if TYPE_CHECKING:
    import re
    from collections.abc import Mapping

    from pii_bench.construction.marked import Marked, MarkedQuery
    from pii_bench.construction.recorded import Recorded

TWINNED_TEXTS: Final = 400
CONVERSATIONS: Final = 200
TWINS: Final = "twins"
TRAIN_TWINS: Final = "train-twins"
TWINNED: Final = "twinned.txt"
"""The file in the folder of recorded texts that lists the ids of texts with twins."""

TEMPLATES: Final = ("professional network", "knowledge platform", "community forum")

_AGAIN, _THIRD = LATER


@dataclass(frozen=True, slots=True)
class TwinRound:
    """A round in which the first `texts` texts of the set `source` get twins.

    `later` is the suffix of their kinds, "" in the first round.
    """

    source: str
    texts: int
    later: str = ""


ROUNDS: Final[Mapping[str, tuple[TwinRound, ...]]] = {
    TRAIN_TWINS: (
        TwinRound("train-multi", 390),
        TwinRound("train-single", 390),
        TwinRound("train-multi", 390, _AGAIN),
        TwinRound("train-multi", 390, _THIRD),
        TwinRound("train-more-multi", 720, _AGAIN),
    ),
    "dev-twins": (TwinRound("dev-multi", 60), TwinRound("dev-single", 60)),
}
"""Set to its rounds of writing."""

TWIN_SETS: Final = (TWINS, *ROUNDS)

_JOINED: Final = 5
_ASKED: Final = 3
# The share of the joined texts in a conversation; greetings and answers are the rest.
_TEXTS_SHARE: Final = 0.86


def twin_sources(recorded: Recorded, name: str = TWINS) -> list[tuple[Marked, str]]:
    """Return the texts that get twins, in order, each with the suffix of its round.

    For the test, these are the texts that `TWINNED` lists, so that the choice stays the same when
    texts are corrected.

    Raises:
        InputFileError: there is no list.
    """
    if name == TWINS:
        ids = read_text(recorded.folder / TWINNED).split()
        return [(recorded.find(text_id), "") for text_id in ids]
    return [
        (text, twin_round.later)
        for twin_round in ROUNDS[name]
        for _, text in sorted(recorded.sets[twin_round.source].items())[: twin_round.texts]
    ]


def twin_kinds(source: Marked, name: str = TWINS, later: str = "") -> tuple[str, ...]:
    """Return the kinds of twins in a set that a text gets in the round with a suffix.

    For training and dev, a text about two people with facts of one category gets two queries about
    these facts, `one` and `other`, instead of a second query about other facts. A third round has
    both, but no further paraphrase.
    """
    has_pair = name in ROUNDS and _shares_category(source)
    kinds = ["one", "other"] if has_pair else []
    if _has_second(source) and (not has_pair or later == _THIRD):
        kinds.append("second")
    if later != _THIRD:
        kinds.append("paraphrase")
    if not later and _can_be_turned(source):
        kinds.append("turned")
    return tuple(kind + later for kind in kinds)


def _has_second(source: Marked) -> bool:
    facts = source.facts
    needs = source.queries[0].needs
    unused = [tag for tag in facts if tag not in needs and not _is_name(facts[tag])]
    return len(unused) >= 2


def _shares_category(source: Marked) -> bool:
    """Return True if two people have facts of one category with different values."""
    values = resolve(source.text).values
    people: defaultdict[str, dict[str, tuple[str, ...]]] = defaultdict(dict)
    for tag, category in source.facts.items():
        if not _is_name(category):
            people[tag[0]][category] = values[tag]
    one, other = people["A"], people["B"]
    return any(one[category] != other[category] for category in one.keys() & other.keys())


def _can_be_turned(source: Marked) -> bool:
    """Return True if the needs of the query can be swapped for the other person's facts."""
    facts = source.facts
    values = resolve(source.text).values
    needs = source.queries[0].needs
    owners = {tag[0] for tag in needs}
    if "relation" not in source.header or len(owners) > 1:
        return False
    others = {facts[tag]: values[tag] for tag in facts if tag[0] not in owners}
    return all(others.get(facts[tag], values[tag]) != values[tag] for tag in needs)


def twin_sheet(recorded: Recorded, portion: int, name: str = TWINS) -> str:
    """Return the text of the twin commissions in a portion, from 1."""
    sources = twin_sources(recorded, name)
    commissions = []
    for number in numbers_of(portion, len(sources)):
        source, later = sources[number - 1]
        queries = list(source.queries)
        if later:
            for twin in recorded.sets[name].values():
                if twin.header["of"] == source.id:
                    queries += twin.queries
        kinds = ", ".join(twin_kinds(source, name, later))
        relation = source.header.get("relation")
        relation_line = f"relation: {relation} (A first)\n" if relation else ""
        shown = "".join(_format_query(query) for query in queries)
        commissions.append(
            f"=== {name}-{number:04d}\nof: {source.id}\nwanted: {kinds}\n"
            f"{relation_line}--- text\n{source.text}\n{shown}"
        )
    return "\n".join(commissions)


def _format_query(query: MarkedQuery) -> str:
    heading = "its own query" if query.kind == "query" else f"its twin {query.kind!r}"
    fields = " | ".join((" ".join(query.needs), query.reference, query.domain, query.asker))
    return f"--- {heading}: {fields}\n{query.text}\n"


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation to write.

    Attributes:
        joined: ids of the five texts.
        texts: the five texts, with the tags of the conversation.
        facts: tag to category; likewise `values`.
        subjects: ids of the subjects that the query is about.
    """

    id: str
    template: str
    joined: tuple[str, ...]
    texts: tuple[str, ...]
    facts: Mapping[str, str]
    values: Mapping[str, str]
    subjects: tuple[str, ...]
    chars: int


def conversation(recorded: Recorded, number: int) -> Conversation:
    """Draw the conversation with a number, from 1."""
    joined = _joined()[number - 1]
    sources = [recorded.find(sample_id) for sample_id in joined]
    random = Random(f"{SEED}/distract/{number}")
    free_letters = iter("ABCDEFGHIJ")
    people: dict[str, list[str]] = {}
    texts: list[str] = []
    facts: dict[str, str] = {}
    values: dict[str, str] = {}
    chars = 0
    for source in sources:
        own = source.facts
        letters = {letter: next(free_letters) for letter in sorted({tag[0] for tag in own})}
        people[source.id] = list(letters.values())
        new_tags = {tag: letters[tag[0]] + tag[1:] for tag in own}
        resolved = resolve(source.text)
        chars += len(resolved.text)
        texts.append(_rename_tags(source.text, new_tags))
        facts |= {new_tags[tag]: category for tag, category in own.items()}
        values |= {new_tags[tag]: resolved.values[tag][0] for tag in own}
    subjects = [random.choice(people[source.id]) for source in random.sample(sources, _ASKED)]
    return Conversation(
        id=f"distract-{number:04d}",
        template=TEMPLATES[number % len(TEMPLATES)],
        joined=joined,
        texts=tuple(texts),
        facts=facts,
        values=values,
        subjects=tuple(subjects),
        chars=round(chars / _TEXTS_SHARE),
    )


def conversation_sheets(recorded: Recorded, portion: int) -> str:
    """Return the text of the conversation commissions in a portion, from 1."""
    numbers = numbers_of(portion, CONVERSATIONS)
    return "\n".join(_format_conversation(conversation(recorded, n)) for n in numbers)


def _format_conversation(brief: Conversation) -> str:
    texts = "\n".join(
        f"--- {sample_id}\n{text}"
        for sample_id, text in zip(brief.joined, brief.texts, strict=True)
    )
    facts = "".join(
        f"  {tag} {category}: {brief.values[tag]}\n" for tag, category in brief.facts.items()
    )
    return (
        f"=== {brief.id}\nplace: {brief.template}\nlength: about {brief.chars} characters\n"
        f"query: about {', '.join(brief.subjects)}, one after the other; about two facts of each; "
        f"about 860 characters\nfacts:\n{facts}{texts}\n"
    )


def _joined() -> list[tuple[str, ...]]:
    """Draw the ids of the five texts of each conversation; each text is used at most once."""
    random = Random(f"{SEED}/distract")
    left: dict[str, list[int]] = {}
    for name in ("single", "multi"):
        size = ORDERS[name].size
        left[name] = random.sample(range(1, size + 1), size)
    groups = []
    for number in range(CONVERSATIONS):
        several = 2 + number % 2
        group = [f"single-{left['single'].pop(0):04d}" for _ in range(_JOINED - several)]
        group += [f"multi-{left['multi'].pop(0):04d}" for _ in range(several)]
        random.shuffle(group)
        groups.append(tuple(group))
    return groups


def _rename_tags(text: str, new_tags: Mapping[str, str]) -> str:
    def rename(mark: re.Match[str]) -> str:
        return "{" + "+".join(new_tags[tag] for tag in mark[1].split("+")) + "|"

    return OPENING.sub(rename, text)


def _is_name(category: str) -> bool:
    return TYPE_OF_CATEGORY[category] is PiiType.PER
