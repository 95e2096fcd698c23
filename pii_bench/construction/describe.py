"""Descriptions: a register's way of telling what is known of one person or two."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from pii_bench.construction.markup import THEY, I, Person, plural_of
from pii_bench.construction.people import Draft, Fact, Mention, Profile
from pii_bench.construction.plan import group
from pii_bench.construction.text import join, length, tidy, total

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from random import Random

    from pii_bench.construction.relations import Relation
    from pii_bench.construction.sentences import Pieces, Style, Writer

_HOOK: Final = " || "
# Few remarks for many texts: not every text has one, so that none is heard too often.
_HOOK_SHARE: Final = 0.7
_LABELLED: Final = frozenset({"transcript", "chat"})
_ALIASES: Final = frozenset({"biography", "self-introduction", "forum-post", "chat"})

FIRST_PERSON: Final = frozenset({"self-introduction", "forum-post", "letter"})

SINGLE_REGISTERS: Final[Mapping[str, float]] = {
    "resume": 1.0,
    "employee-record": 1.0,
    "case-note": 1.0,
    "biography": 1.0,
    "self-introduction": 1.0,
    "forum-post": 1.2,
    "letter": 1.2,
    "transcript": 0.9,
    "family-scene": 0.9,
    "chat": 0.8,
}

PAIR_REGISTERS: Final[Mapping[str, float]] = {
    "employee-record": 0.8,
    "case-note": 1.2,
    "biography": 0.8,
    "forum-post": 1.0,
    "letter": 1.2,
    "transcript": 1.0,
    "family-scene": 1.0,
    "chat": 1.0,
}

_STYLES: Final[Mapping[str, Style]] = {
    "resume": "record",
    "employee-record": "record",
    "case-note": "formal",
    "biography": "plain",
    "self-introduction": "casual",
    "forum-post": "casual",
    "letter": "plain",
    "transcript": "casual",
    "family-scene": "plain",
    "chat": "casual",
}

# What is nobody's: else every digit and capital would be a person's.
# On a record they are out of place, and seldom.
_DISTRACTOR_SHARE: Final[Mapping[Style, float]] = {
    "record": 0.35,
    "formal": 0.4,
    "plain": 0.7,
    "casual": 0.7,
}
_PAIR_DISTRACTORS: Final = {0: 0.2, 1: 0.5, 2: 0.3}

_SINGLE_SIZES: Final = {1: 0.6, 2: 0.32, 3: 0.08}
_PAIR_SIZES: Final = {1: 0.06, 2: 0.34, 3: 0.6}


def takes_alias(register: str) -> bool:
    """Whether people of a register may go by a nickname or a handle."""
    return register in _ALIASES


@dataclass
class Describer:
    """Composes descriptions of one split.

    Attributes:
        writer: makes the sentences.
        random: decides.
    """

    writer: Writer
    random: Random

    def single(self, profile: Profile, register: str, target: int) -> Draft:
        """A description of one person, about `target` characters long."""
        name = profile.name
        role = self._role(register)
        if register in _LABELLED:
            return self._single_talk(profile, register, name, target)
        person = I if register in FIRST_PERSON else profile.voice
        alias = "" if name.category == "Full Name" else " alias"
        opening = self.writer.introduce(
            self._deal(register, f"opening{alias}"), {"PER": (profile.id, name)}, person
        )
        units = self._units(profile, person, role, register, _SINGLE_SIZES)
        hooks, reference = self._perhaps_hook(register, person)
        closing = self.writer.frame(register, "closing", self._named(person, role))
        fillers = self._fillers(
            register, person, role, target - total([opening, *units, *hooks, closing])
        )
        body = self._mix(units, [*hooks, *fillers])
        blocks = self._paragraphs([opening, *body, closing], register)
        return Draft(blocks, register, None, reference, {profile.id: role} if role else {})

    def pair(
        self,
        a: Profile,
        b: Profile,
        relation: Relation,
        register: str,
        target: int,
        *,
        tries: int = 1,
    ) -> Draft:
        """A description of two related people, about `target` characters long.

        What follows the introduction is written `tries` times and the text of the right
        length kept: the introduction is not chosen for being short.
        """
        bank = self.writer.banks.relations[relation.name]
        outside = _roles(bank.frames("roles outsider")[0], (a.voice, b.voice))
        own = _roles(bank.frames("roles own")[0], (b.voice, a.voice))
        roles = {"A": outside[0], "B": outside[1], "A speaks of B": own[0], "B speaks of A": own[1]}
        intro = self._intro(relation, _intro_kind(register), a, b, own[0])
        if register in FIRST_PERSON:
            people = {"A": I, "B": replace(b.voice, role=own[0])}
        else:
            people = {
                "A": replace(a.voice, role=outside[0]),
                "B": replace(b.voice, role=outside[1]),
            }
        texts = [
            self._pair_talk(a, b, relation, register, own, intro, target)
            if register in _LABELLED
            else self._pair_text(a, b, relation, register, people, intro, target)
            for _ in range(tries)
        ]
        blocks = min(texts, key=lambda text: abs(total(list(text)) - target))
        return Draft(blocks, register, relation.name, "", roles)

    def _pair_text(
        self,
        a: Profile,
        b: Profile,
        relation: Relation,
        register: str,
        people: Mapping[str, Person],
        intro: Pieces,
        target: int,
    ) -> tuple[Pieces, ...]:
        shared, rest = _split_shared(a, b, relation)
        plural = "we" if people["A"] is I else "they"
        units = [self._shared(relation, fact, plural=plural) for fact in shared]
        order = [a, b] if self.random.random() < 0.7 else [b, a]
        for profile in order:
            units += self._pair_units(
                profile, rest[profile.id], people[profile.id], _STYLES[register]
            )
        room = target - total([intro, *units])
        distractors = self._pair_distractors()
        fillers = [*distractors, *self._pair_fillers(relation, room - total(distractors))]
        body = self._mix(units, fillers)
        return self._paragraphs([intro, *body], register)

    # One voice, or several, on a record of talk.

    def _single_talk(self, profile: Profile, register: str, name: Fact, target: int) -> Draft:
        bank = self.writer.banks.registers[register]
        staff = self._deal(register, "staff")
        alias = "" if name.category == "Full Name" or not bank.frames("opening alias") else " alias"
        opening = self.writer.introduce(
            self._deal(register, f"opening{alias}"), {"PER": (profile.id, name)}, THEY
        )
        label = Mention((profile.id,), name)
        capitals = register != "chat" or self.random.random() < 0.6
        units = [
            self.writer.say(facts, I, profile.id, "casual")
            for facts in group(profile.others, _SINGLE_SIZES, self.random)
        ]
        hooks, reference = self._perhaps_hook(register, I)
        closing = self.writer.frame(register, "closing", I)
        room = target - total([opening, *units, *hooks, closing])
        room -= (len(name.value) + len(staff) + 30) * (len(units) // 2 + 1)
        said = self._mix(units, [*hooks, *self._fillers(register, I, "", room)])
        blocks: list[Pieces] = [opening]
        while said:
            if self.random.random() < (0.6 if capitals else 0.3):
                prompt = self.writer.frame(register, "prompt", THEY)
                blocks.append((f"{staff}: ", *prompt))
            # Who writes without capitals sends each thought by itself.
            count = min(self.random.choice((1, 2, 2, 3)) if capitals else 1, len(said))
            turn = tidy(join(said[:count]), capitals=capitals)
            blocks.append((label, ": ", *turn))
            del said[:count]
        blocks.append((f"{staff}: ", *closing))
        return Draft(tuple(blocks), register, None, reference, {})

    def _pair_talk(
        self,
        a: Profile,
        b: Profile,
        relation: Relation,
        register: str,
        own: tuple[str, str],
        intro: Pieces,
        target: int,
    ) -> tuple[Pieces, ...]:
        shared, rest = _split_shared(a, b, relation)
        turns: dict[str, list[Pieces]] = {"A": [], "B": []}
        of_other = {"A": replace(b.voice, role=own[0]), "B": replace(a.voice, role=own[1])}
        for profile, other in ((a, "B"), (b, "A")):
            for facts in group(rest[profile.id], _PAIR_SIZES, self.random):
                if self.random.random() < 0.2:
                    person = of_other[other]
                    turns[other].append(
                        self.writer.say(facts, person, profile.id, "casual", dense=True)
                    )
                else:
                    turns[profile.id].append(
                        self.writer.say(facts, I, profile.id, "casual", dense=True)
                    )
        for fact in shared:
            speaker = self.random.choice("AB")
            turns[speaker].insert(0, self._shared(relation, fact, plural="we"))
        labels = {p.id: Mention((p.id,), p.name) for p in (a, b)}
        units = [unit for each in turns.values() for unit in each]
        room = target - total([intro, *units]) - 16 * len(units)
        fillers = self._fillers(register, I, "", room) or self._pair_distractors()
        for filler in fillers:
            speaker = self.random.choice("AB")
            turns[speaker].insert(self.random.randrange(len(turns[speaker]) + 1), filler)
        capitals = {p: register != "chat" or self.random.random() < 0.6 for p in "AB"}
        blocks: list[Pieces] = [intro]
        speaker = self.random.choice("AB")
        while turns["A"] or turns["B"]:
            if not turns[speaker]:
                speaker = "B" if speaker == "A" else "A"
            both = turns["B" if speaker == "A" else "A"]
            count = self.random.choice((1, 1, 2)) if both else len(turns[speaker])
            count = count if capitals[speaker] else 1
            said, turns[speaker] = turns[speaker][:count], turns[speaker][count:]
            turn = tidy(join(said), capitals=capitals[speaker])
            blocks.append((labels[speaker], ": ", *turn))
            speaker = "B" if speaker == "A" else "A"
        return tuple(blocks)

    # Parts of a text.

    def _units(
        self,
        profile: Profile,
        person: Person,
        role: str,
        register: str,
        sizes: Mapping[int, float],
    ) -> list[Pieces]:
        units = []
        for number, facts in enumerate(group(profile.others, sizes, self.random)):
            by_role = number > 0 and self.random.random() < 0.35
            voice = self._named(person, role) if by_role else person
            unit = self.writer.say(facts, voice, profile.id, _STYLES[register])
            units.append(unit)
        return units

    def _pair_units(
        self, profile: Profile, facts: Sequence[Fact], person: Person, style: Style
    ) -> list[Pieces]:
        """One person's sentences in a row: by role first, then often by pronoun."""
        units = []
        for number, some in enumerate(group(facts, _PAIR_SIZES, self.random)):
            by_pronoun = number > 0 and self.random.random() < 0.55
            voice = replace(person, role=None) if by_pronoun else person
            units.append(self.writer.say(some, voice, profile.id, style, dense=True))
        return units

    def _intro(self, relation: Relation, kind: str, a: Profile, b: Profile, own: str) -> Pieces:
        frames = self.writer.banks.relations[relation.name].frames(f"intro {kind}")
        # Much must follow in little room.
        longest = sorted(map(len, frames))[len(frames) * 2 // 3]
        frame = self.writer.dealer.deal(
            (relation.name, kind), frames, lambda frame: len(frame) <= longest
        ).replace("{B}", own)
        return self.writer.introduce(frame, {"A": ("A", a.name), "B": ("B", b.name)}, I)

    def _shared(self, relation: Relation, fact: Fact, *, plural: str) -> Pieces:
        name = f"shared {fact.category}"
        frames = self.writer.banks.relations[relation.name].frames(name)
        frame = plural_of(self.writer.dealer.deal((relation.name, name), frames), plural)
        pieces = self.writer.introduce(frame, {"V": ("A", fact)}, THEY)
        return tuple(
            replace(piece, subjects=("A", "B")) if isinstance(piece, Mention) else piece
            for piece in pieces
        )

    def hook(self, register: str, person: Person) -> tuple[Pieces, str]:
        """A particular remark, and a noun phrase that recalls who made it."""
        text, reference = self._deal(register, "hook").split(_HOOK)
        return self.writer.plain(text, person), reference

    def _perhaps_hook(self, register: str, person: Person) -> tuple[list[Pieces], str]:
        if self.random.random() >= _HOOK_SHARE:
            return [], ""
        hook, reference = self.hook(register, person)
        return [hook], reference

    def _fillers(self, register: str, person: Person, role: str, room: int) -> list[Pieces]:
        fillers: list[Pieces] = []
        while room > 40:
            voice = self._named(person, role) if self.random.random() < 0.4 else person
            if self.random.random() < _DISTRACTOR_SHARE[_STYLES[register]]:
                filler = self.writer.distractor()
            else:
                filler = self.writer.frame(register, "filler", voice)
            room -= length(filler) + 1
            fillers.append(filler)
        return fillers

    def _pair_distractors(self) -> list[Pieces]:
        """There is hardly room for them."""
        count = self.random.choices(list(_PAIR_DISTRACTORS), list(_PAIR_DISTRACTORS.values()))[0]
        return [self.writer.distractor() for _ in range(count)]

    def _pair_fillers(self, relation: Relation, room: int) -> list[Pieces]:
        frames = self.writer.banks.relations[relation.name].frames("filler")
        fillers: list[Pieces] = []
        while room > 50:
            frame = self.writer.dealer.deal((relation.name, "filler"), frames)
            filler = self.writer.plain(plural_of(frame, "they"), THEY)
            room -= length(filler) + 1
            fillers.append(filler)
        return fillers

    def _mix(self, units: list[Pieces], fillers: list[Pieces]) -> list[Pieces]:
        """Units in their order, fillers anywhere between."""
        mixed = list(units)
        for filler in fillers:
            mixed.insert(self.random.randrange(len(mixed) + 1), filler)
        return mixed

    def _paragraphs(self, sentences: list[Pieces], register: str) -> tuple[Pieces, ...]:
        one_block = register in {"employee-record", "biography"} and self.random.random() < 0.5
        size = len(sentences) if one_block else self.random.choice((3, 4, 5))
        return tuple(
            tidy(join(sentences[start : start + size])) for start in range(0, len(sentences), size)
        )

    def _role(self, register: str) -> str:
        roles = self.writer.banks.registers[register].frames("role")
        return self.random.choice(roles) if roles else ""

    def _named(self, person: Person, role: str) -> Person:
        return replace(person, role=role) if role and person is not I else person

    def _deal(self, register: str, section: str) -> str:
        frames = self.writer.banks.registers[register].frames(section)
        return self.writer.dealer.deal((register, section), frames)


def _intro_kind(register: str) -> str:
    if register in _LABELLED:
        return "dialogue"
    if register in FIRST_PERSON:
        return "first"
    return "scene" if register == "family-scene" else "formal"


def _split_shared(
    a: Profile, b: Profile, relation: Relation
) -> tuple[list[Fact], dict[str, list[Fact]]]:
    """Facts that the relation makes common to both, and each one's own."""
    shared = [
        fact
        for fact in a.others
        if fact in b.facts and (fact.category, fact.facet) in relation.shared
    ]
    rest = {p.id: [fact for fact in p.others if fact not in shared] for p in (a, b)}
    return shared, rest


def _roles(line: str, voices: tuple[Person, Person]) -> tuple[str, str]:
    """The two nouns of a line `she, he, they || she, he, they` for the two voices."""
    sides = [side.split(", ") for side in line.split(_HOOK)]
    order = ("she", "he", "they")
    first, second = (
        side[order.index(voice.pronouns[0])] for side, voice in zip(sides, voices, strict=True)
    )
    return first, second
