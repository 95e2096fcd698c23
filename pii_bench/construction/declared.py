"""Commissions whose writers choose and declare the facts (`facts: A1 Full Name, A2 Age`).

A commission of `frontier`, the set of difficult texts, gives reasons for the difficulty, a cast
with names and numbers, a voice and a length.

A commission of `train-other` gives a kind of text that users paste but that the benchmark's own
sets lack. The writer also invents names, numbers and values. People may be called by a first name
or a surname only, queries may name them, and a text may contain nothing personal.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from random import Random
from typing import TYPE_CHECKING, Final

from pii_bench.construction.commissions import SEED, deal, numbers_of
from pii_bench.construction.people import Census, Unresolvable
from pii_bench.construction.pools import WRITERS, load_pools, load_voices
from pii_bench.construction.values import draw_value
from pii_bench.taxonomy import PiiType

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FRONTIER: Final = "frontier"
FRONTIER_SIZE: Final = 300

REASONS: Final[Mapping[str, str]] = {
    "several": "several of a kind: three addresses, two employers, four dates; only one is "
    "meant, and the text says which, once, elsewhere",
    "time": "corrections and time: a figure corrected later, a status that has ended, "
    '"until August we lived..."',
    "chain": "what is needed follows from knowledge of the matter; 3 to 6 facts",
    "none": "nothing needed: the request can be met without any fact of a person, though the "
    "text is full of tempting ones; no tag",
    "most": "nearly all needed: masking would ruin the answer; all facts but the names and "
    "one to three others",
    "who": "four to eight people, kinship and roles crossing, quoted speech, pronouns across "
    "paragraphs; the query points by relation",
    "conditions": "the request forbids or demands a fact, or changes one: "
    '"if I registered at my mother\'s instead", "leave my illness out of it"',
    "length": "3,000 to 10,000 characters of thread, file or minutes; the facts are in "
    "two places far apart",
    "forms": "values in words, split over lines, with typos, in another script or language, "
    "in tables, in signatures and quoted e-mail headers",
}
"""Reasons why a sample is difficult, with the explanation for the writer."""

# "none" and "most" count as one reason, so each is dealt half as often.
_USUAL: Final = ("several", "time", "chain", "who", "conditions", "length", "forms")
_DEALT: Final = (*_USUAL, *_USUAL, "none", "most")
# Reasons of the last samples, with which each reason has 40 samples ("none" and "most" together).
_LAST: Final = (
    *("length", "chain", "length", "chain", "length", "none", "most"),
    *("chain", "length", "chain", "length", "none", "most", "length", "most"),
)
# Second reasons, which combine with any first one.
_SECOND: Final = ("several", "time", "who", "conditions", "forms")
_CODES: Final = 4
_CHARS: Final = (1000, 2200)
_LONG: Final = (3100, 5200)
_OFFERED: Final = 5
_TRIES: Final = 200


@dataclass(frozen=True, slots=True)
class Member:
    """A person of the cast.

    Attributes:
        letter: subject id.
        names: the name and its alternatives.
        home: country and an example of a city.
        codes: category to the allowed values.
    """

    letter: str
    pronoun: str
    names: tuple[str, ...]
    home: str
    codes: Mapping[str, tuple[str, ...]]

    def allowed(self, category: str) -> tuple[str, ...]:
        """Return the allowed names or numbers of this person."""
        return self.names if category == "Full Name" else self.codes.get(category, ())


@dataclass(frozen=True, slots=True)
class FrontierCommission:
    """A difficult sample to write, for two of `REASONS` and with a cast to choose from."""

    id: str
    reasons: tuple[str, ...]
    cast: tuple[Member, ...]
    writer: str
    voice: str
    theme: str
    registers: tuple[str, ...]
    domain: str
    chars: int


def frontier_commission(number: int) -> FrontierCommission:
    """Draw the commission with a number, from 1."""
    random = Random(f"{SEED}/{FRONTIER}/{number}")
    voices = load_voices()
    first, domain = _plan()[number - 1]
    second = random.choice([reason for reason in _SECOND if reason != first])
    reasons = (first, second)
    theme = random.choice(sorted(voices.themes))
    writer = random.choice(WRITERS)
    people = random.randint(4, 7) if "who" in reasons else random.randint(2, 3)
    possible = voices.registers_of(writer, people)
    person = random.choice(voices.people_of(writer, theme))
    return FrontierCommission(
        id=f"{FRONTIER}-{number:04d}",
        reasons=reasons,
        cast=_cast(people, random),
        writer=writer,
        voice=f"{person}; {random.choice(voices.devices)}; {random.choice(voices.manners)}",
        theme=theme,
        registers=tuple(random.sample(possible, min(_OFFERED, len(possible)))),
        domain=domain,
        chars=10 * round(random.uniform(*(_LONG if first == "length" else _CHARS)) / 10),
    )


@cache
def _plan() -> Sequence[tuple[str, str]]:
    """Deal the first reason and the domain of each sample."""
    random = Random(f"{SEED}/{FRONTIER}")
    reasons = deal(_DEALT, FRONTIER_SIZE, random)
    reasons[-len(_LAST) :] = _LAST
    domains = deal(load_voices().domains, FRONTIER_SIZE, random)
    return tuple(zip(reasons, domains, strict=True))


def _cast(people: int, random: Random) -> tuple[Member, ...]:
    census = Census(load_pools("test"), random)
    cast: list[Member] = []
    for _ in range(_TRIES):
        try:
            profile = census.single((PiiType.CODE,) * _CODES, alias=False)
        except Unresolvable:
            continue
        draw, (name, *codes) = profile.draw, profile.facts
        names = [name.value, draw_value("Full Name", "", draw), draw_value("Full Name", "", draw)]
        values: dict[str, tuple[str, ...]] = {}
        for code in codes:
            spare = draw_value(code.category, code.facet, draw)
            values[code.category] = tuple(dict.fromkeys([code.value, spare]))
        cast.append(
            Member(
                letter="ABCDEFGH"[len(cast)],
                pronoun=draw.pronoun,
                names=tuple(dict.fromkeys(names)),
                home=f"{draw.country.name}, for example in {draw.city.name}",
                codes=values,
            )
        )
        if len(cast) == people:
            return tuple(cast)
    raise RuntimeError(f"no {people} people without conflicts in {_TRIES} attempts")


def frontier_sheet(portion: int) -> str:
    """Return the text of the commissions in a portion, from 1."""
    numbers = numbers_of(portion, FRONTIER_SIZE)
    return "\n".join(_format_frontier(frontier_commission(n)) for n in numbers)


def _format_frontier(brief: FrontierCommission) -> str:
    least, most = round(brief.chars * 0.85), round(brief.chars * 1.15)
    lines = [
        f"=== {brief.id}",
        *(f"reason: {name} ({REASONS[name]})" for name in brief.reasons),
        f"voice: {brief.voice} ({brief.writer})",
        f"matter: {brief.theme}",
        f"kind of text, for example: {', '.join(brief.registers)}",
        f"length: {brief.chars} characters ({least} to {most})",
        f"query about, for example: {brief.domain}",
    ]
    for member in brief.cast:
        name, *spares = member.names
        lines.append(
            f"{member.letter}: {name} [or: {', '.join(spares)}]; {member.pronoun}; lives in "
            f"{member.home}"
        )
        lines += [
            f"  {category}: {' or '.join(values)}" for category, values in member.codes.items()
        ]
    return "\n".join(lines) + "\n"


OTHER: Final = "train-other"
OTHER_SIZE: Final = 1_344


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of text to commission: its relative frequency, range of length, and possible people.

    `people` are possible numbers of people, and `named` possible ways to name them.
    """

    weight: int
    chars: tuple[int, int]
    people: tuple[int, ...]
    named: tuple[str, ...]


KINDS_OF_TEXT: Final[Mapping[str, Kind]] = {
    "chat": Kind(3, (20, 300), (1, 2, 3), ("first names", "handles and first names")),
    "contract": Kind(2, (300, 900), (2,), ("full names",)),
    "court": Kind(
        4,
        (600, 1300),
        (1, 2, 3),
        (
            "full name once, then Mr or Ms and surname",
            "initials with a surname (J. Novak)",
            "full names",
        ),
    ),
    "cv": Kind(2, (300, 800), (1,), ("full name",)),
    "dictation": Kind(2, (30, 200), (1, 2), ("first names", "full name")),
    "email": Kind(
        3,
        (200, 800),
        (1, 2, 3),
        ("full name in header and signature, first name in the greeting", "first names"),
    ),
    "family": Kind(3, (150, 600), (2, 3, 4, 5), ("first names", "first names and relations")),
    "form": Kind(2, (120, 600), (1, 2), ("full name", "surname, first name (as forms print it)")),
    "forum": Kind(
        4,
        (350, 1100),
        (1, 2, 3),
        ("none: I, my sister, OP", "first names", "handle", "none: I, my husband"),
    ),
    "impersonal": Kind(2, (60, 500), (0,), ("-",)),
    "medical": Kind(3, (200, 800), (1, 2), ("full name", "surname with Mr or Ms", "none: I")),
    "minutes": Kind(
        2, (250, 800), (3, 4), ("first names as speakers", "full names, then initials")
    ),
    "news": Kind(3, (250, 800), (1, 2, 3), ("full name once, then surname alone", "full names")),
    "note": Kind(4, (12, 150), (1, 2), ("first names", "full name", "surname with Mr, Ms, Dr")),
    "payment": Kind(3, (60, 450), (1, 2), ("full name", "first name")),
    "prompt": Kind(3, (120, 700), (1, 2), ("none: I", "first names", "full name")),
    "review": Kind(2, (60, 450), (1, 2), ("first names", "none: I", "surname with Dr")),
    "ticket": Kind(3, (150, 700), (1, 2), ("full name", "user name", "surname with Mr or Ms")),
}
"""The kinds of text in `train-other`, by their name in the header line `kind:`."""

_QUERIES: Final = (
    "one needs one or two facts; the other needs others, or nothing",
    "one needs the number, account or address that the text holds; the other nothing personal",
    "one is about one person; the other is the same about another person or another fact",
    "both need facts; one of them names a person as users do",
    "one long and chatty that needs one or two facts; one of under 40 characters",
)


def other_sheet(portion: int) -> str:
    """Return the text of the commissions in a portion, from 1."""
    return "\n".join(_format_other(number) for number in numbers_of(portion, OTHER_SIZE))


def _format_other(number: int) -> str:
    random = Random(f"{SEED}/{OTHER}/{number}")
    weights = [kind.weight for kind in KINDS_OF_TEXT.values()]
    name, kind = random.choices(list(KINDS_OF_TEXT.items()), weights)[0]
    people = random.choice(kind.people)
    queries = random.choice(_QUERIES) if people else "one, which needs nothing"
    return (
        f"=== {OTHER}-{number:04d}\nkind: {name}\n"
        f"length: about {round(random.uniform(*kind.chars), -1):.0f} characters\n"
        f"people: {people}, named by: {random.choice(kind.named)}\nqueries: {queries}\n"
    )
