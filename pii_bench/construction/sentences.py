"""Sentences about facts, out of frames."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final, Literal

import inflect

from pii_bench.construction.markup import THEY, Person, render
from pii_bench.construction.people import Fact, Mention
from pii_bench.construction.text import tidy

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from random import Random

    from pii_bench.construction.grammar import Banks, Dealer

Style = Literal["formal", "plain", "casual", "record"]
Pieces = tuple["str | Mention", ...]

# Which sections of a fact's bank a style draws on, and how often.
_SECTIONS: Final[Mapping[Style, Mapping[str, float]]] = {
    "record": {"record": 0.55, "formal": 0.45},
    "formal": {"formal": 0.6, "sentence": 0.3, "record": 0.1},
    "plain": {"sentence": 0.85, "casual": 0.15},
    "casual": {"casual": 0.6, "sentence": 0.4},
}

_DIGITS: Final = re.compile(r"#[#,.]*#|#")

# What the sentences hold that nobody's values stand in, and how often. A number is another
# each time; a name is soon known.
_DISTRACTORS: Final[Mapping[str, float]] = {
    "number": 0.2,
    "value": 0.2,
    "name": 0.2,
    "word": 0.4,
}

_LEAD_SHARE: Final = 0.2

_LEADS: Final[Mapping[Style, str]] = {
    "record": "lead formal",
    "formal": "lead formal",
    "plain": "lead plain",
    "casual": "lead casual",
}


# Eight, eleven and eighteen, also thousands of them, which inflect reads as any other number.
_EIGHT_OR_ELEVEN: Final = re.compile(r"(?:[A-Z]{0,2}[^\w\s])?(?:8|1[18](?!\d))")


@cache
def article(value: str) -> str:
    """`a` or `an`, as the value sounds: "an 82%", "an $11,000", "a $1,100"."""
    if _EIGHT_OR_ELEVEN.match(value):
        return "an"
    return inflect.engine().a(value).split()[0]


# English names of agencies that are common nouns: "from the Land Registry", "by Skatteverket".
_COMMON_NOUN: Final = re.compile(
    r"(Agency|Authority|Office|Department|Ministry|Commission|Commissioners|Service|Board|Bureau"
    r"|Administration|Registry|Tribunal|Fund|Centre|Organisation|Directorate|Branch|Ombudsman"
    r"|Regulator|Corporation|Court|Lands|Taxation|Veterans Affairs|Management|Deeds|Trade)$"
)
_AFTER_WHICH_THE: Final = re.compile(
    r"\b(about|against|and|asked|at|before|between|by|for|from|in|into|of|on|that|through|to|told"
    r"|toward|towards|under|via|when|with|within)\s+$"
)


def _wants_the(fact: Fact, before: str | Mention) -> bool:
    return (
        fact.category == "Government Agency"
        and isinstance(before, str)
        and _COMMON_NOUN.search(fact.value) is not None
        and _AFTER_WHICH_THE.search(before) is not None
    )


@dataclass
class Writer:
    """Makes sentences in one split; every frame is dealt from its deck."""

    banks: Banks
    dealer: Dealer
    random: Random

    def say(
        self,
        facts: Sequence[Fact],
        person: Person,
        subject: str,
        style: Style,
        *,
        dense: bool = False,
    ) -> Pieces:
        """One sentence, or two, with these facts of a person.

        Args:
            facts: one to three of them.
            person: how the person is spoken of.
            subject: their id.
            style: of the text around.
            dense: use the shorter frames, where much must be said in little room.
        """
        if len(facts) == 1:
            sections = _SECTIONS[style]
            section = self.random.choices(list(sections), list(sections.values()))[0]
            frame = self._frame(facts[0], section, dense=dense)
            return self._fill(frame, {"V": facts[0]}, person, subject)
        return self._coordinate(facts, person, subject, style, dense=dense)

    def frame(self, bank: str, section: str, person: Person) -> Pieces:
        """A frame of a register without facts."""
        frames = self.banks.registers[bank].frames(section)
        return self.plain(self.dealer.deal((bank, section), frames), person)

    def distractor(self) -> Pieces:
        """A sentence with numbers, measures, names or words that are nobody's."""
        kind = self.random.choices(list(_DISTRACTORS), list(_DISTRACTORS.values()))[0]
        frame = self.dealer.deal(("distractor", kind), self.banks.distractors.frames(kind))
        text = "".join(str(piece) for piece in self.plain(frame, THEY))
        return (_DIGITS.sub(lambda match: self._digits(match[0]), text),)

    def _digits(self, pattern: str) -> str:
        first, rest = pattern[0], pattern[1:]
        drawn = str(self.random.randrange(1, 10)) if first == "#" else first
        return drawn + "".join(str(self.random.randrange(10)) if c == "#" else c for c in rest)

    def plain(self, frame: str, person: Person) -> Pieces:
        """A frame without slots."""
        return self._fill(frame, {}, person, "")

    def introduce(
        self, frame: str, facts: Mapping[str, tuple[str, Fact]], person: Person
    ) -> Pieces:
        """A frame whose slots are facts of several subjects: slot to (subject, fact)."""
        values = {slot: fact.value for slot, (_, fact) in facts.items()}
        pieces: list[str | Mention] = []
        for piece in render(frame, person, values, self.random, article):
            if isinstance(piece, str):
                pieces.append(piece)
                continue
            subject, fact = facts[piece.name]
            if _wants_the(fact, pieces[-1] if pieces else ""):
                pieces.append("the ")
            pieces.append(Mention((subject,), fact))
        return tidy(pieces)

    def _coordinate(
        self,
        facts: Sequence[Fact],
        person: Person,
        subject: str,
        style: Style,
        *,
        dense: bool,
    ) -> Pieces:
        joint = self.dealer.deal(
            ("joint", str(len(facts))),
            self.banks.joints.frames({2: "two", 3: "three"}[len(facts)]),
        )
        for number, fact in enumerate(facts, start=1):
            clause = self._frame(fact, "clause", dense=dense).replace("<V>", f"<{number}>")
            clause = clause.replace("<a V>", f"<a {number}>")
            joint = joint.replace(f"<{number}>", clause, 1)
        if not dense and self.random.random() < _LEAD_SHARE:
            name = _LEADS[style]
            joint = f"{self.dealer.deal((name,), self.banks.joints.frames(name))} {joint}"
        slots = {str(number): fact for number, fact in enumerate(facts, start=1)}
        return self._fill(joint, slots, person, subject)

    def _frame(self, fact: Fact, section: str, *, dense: bool) -> str:
        frames = self.banks.facts[fact.category].frames(section, fact.facet)
        # A value stays as it is: where it is lower-case it must not open a sentence.
        lower = fact.value[0].islower()
        longest = sorted(map(len, frames))[len(frames) // 3 if dense else -1]
        return self.dealer.deal(
            (fact.category, fact.facet, section),
            frames,
            lambda frame: len(frame) <= longest and not (lower and frame.startswith("<")),
        )

    def _fill(self, frame: str, facts: Mapping[str, Fact], person: Person, subject: str) -> Pieces:
        return self.introduce(
            frame, {slot: (subject, fact) for slot, fact in facts.items()}, person
        )
