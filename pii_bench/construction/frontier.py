"""Commissions for `frontier`: difficult texts, with the reason for the difficulty.

A commission names reasons for difficulty, a cast with names and numbers, a voice and a length. The
writer chooses the facts and declares them in the header, as `facts: A1 Full Name, A2 Age`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from random import Random
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from pii_bench.construction.commissions import SEED, dealt, numbers_of
from pii_bench.construction.people import Census, Unresolvable
from pii_bench.construction.pools import WRITERS, load_pools, load_voices
from pii_bench.construction.values import draw_value
from pii_bench.taxonomy import PiiType

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FRONTIER: Final = "frontier"
FRONTIER_SIZE: Final = 300

REASONS: Final[Mapping[str, str]] = MappingProxyType(
    {
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
        "length": "3,000 to 10,000 characters of thread, file or minutes; the matter stands in "
        "two places far apart",
        "forms": "values in words, split over lines, with typos, in another script or language, "
        "in tables, in signatures and quoted e-mail headers",
    }
)
"""Why a sample is difficult; the texts are what a writer is told."""

# None and most count as one reason, so each of them is dealt half as often.
_DEALT: Final = (
    *("several", "time", "chain", "who", "conditions", "length", "forms"),
    *("several", "time", "chain", "who", "conditions", "length", "forms"),
    *("none", "most"),
)
# Of the last samples: every reason comes to 40 samples, none and most together.
_LAST: Final = (
    *("length", "chain", "length", "chain", "length", "none", "most"),
    *("chain", "length", "chain", "length", "none", "most", "length", "most"),
)
# A second reason that goes with any other.
_SECOND: Final = ("several", "time", "who", "conditions", "forms")
_CODES: Final = 4
_CHARS: Final = (1000, 2200)
_LONG: Final = (3100, 5200)
_OFFERED: Final = 5
_TRIES: Final = 200


@dataclass(frozen=True, slots=True)
class Member:
    """One person of the cast.

    Attributes:
        names: the name and two spares.
        home: for example where they live.
        codes: category to numbers that may be used for them.
    """

    letter: str
    pronoun: str
    names: tuple[str, ...]
    home: str
    codes: Mapping[str, tuple[str, ...]]

    def allowed(self, category: str) -> tuple[str, ...]:
        """The values that a name or number of this person may have."""
        return self.names if category == "Full Name" else self.codes.get(category, ())


@dataclass(frozen=True, slots=True)
class FrontierCommission:
    """One sample that is to be written.

    Attributes:
        reasons: names of `REASONS`.
        cast: of whom the writer uses as many as the text needs.
        chars: length of the text.
    """

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
    """Draw the commission of a number, from 1.

    Raises:
        MissingExtraError: Faker is not installed.
        InputFileError: a pool or table is broken.
    """
    random = Random(f"{SEED}/{FRONTIER}/{number}")
    voices = load_voices()
    first, domain = _plan()[number - 1]
    second = random.choice([reason for reason in _SECOND if reason != first])
    reasons = (first, second)
    theme = random.choice(sorted(voices.themes))
    writer = random.choice(WRITERS)
    people = random.randint(4, 7) if "who" in reasons else random.randint(2, 3)
    possible = voices.registers_of(writer, people)
    who = random.choice(voices.who(writer, theme))
    return FrontierCommission(
        id=f"{FRONTIER}-{number:04d}",
        reasons=reasons,
        cast=_cast(people, random),
        writer=writer,
        voice=f"{who}; {random.choice(voices.on)}; {random.choice(voices.manner)}",
        theme=theme,
        registers=tuple(random.sample(possible, min(_OFFERED, len(possible)))),
        domain=domain,
        chars=10 * round(random.uniform(*(_LONG if first == "length" else _CHARS)) / 10),
    )


@cache
def _plan() -> Sequence[tuple[str, str]]:
    """The first reason and the domain of each sample, dealt so that every share is met."""
    random = Random(f"{SEED}/{FRONTIER}")
    reasons = dealt(_DEALT, FRONTIER_SIZE, random)
    reasons[-len(_LAST) :] = _LAST
    domains = dealt(load_voices().domains, FRONTIER_SIZE, random)
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
        names = dict.fromkeys([name.value, *(draw_value("Full Name", "", draw) for _ in range(2))])
        cast.append(
            Member(
                letter="ABCDEFGH"[len(cast)],
                pronoun=draw.pronoun,
                names=tuple(names),
                home=f"{draw.country.name}, for example in {draw.city.name}",
                codes={
                    code.category: tuple(
                        dict.fromkeys([code.value, draw_value(code.category, code.facet, draw)])
                    )
                    for code in codes
                },
            )
        )
        if len(cast) == people:
            return tuple(cast)
    raise RuntimeError(f"no {people} people without conflicts in {_TRIES} attempts")


def frontier_sheet(portion: int) -> str:
    """The commissions of a portion, from 1, for a writer to read."""
    numbers = numbers_of(portion, FRONTIER_SIZE)
    return "\n".join(_told(frontier_commission(n)) for n in numbers)


def _told(asked: FrontierCommission) -> str:
    least, most = round(asked.chars * 0.85), round(asked.chars * 1.15)
    lines = [
        f"=== {asked.id}",
        *(f"reason: {name} ({REASONS[name]})" for name in asked.reasons),
        f"voice: {asked.voice} ({asked.writer})",
        f"matter: {asked.theme}",
        f"kind of text, for example: {', '.join(asked.registers)}",
        f"length: {asked.chars} characters ({least} to {most})",
        f"query about, for example: {asked.domain}",
    ]
    for member in asked.cast:
        name, *spares = member.names
        lines.append(
            f"{member.letter}: {name} [or: {', '.join(spares)}]; {member.pronoun}; lives in "
            f"{member.home}"
        )
        lines += [f"  {category}: {' or '.join(v)}" for category, v in member.codes.items()]
    return "\n".join(lines) + "\n"
