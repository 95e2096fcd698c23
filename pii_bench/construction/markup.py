"""The markup of the grammar's frames, and how a frame becomes text.

| written | means |
|---|---|
| `{S} {O} {P} {Q} {R}` | the person: she, her, her, hers, herself |
| `{work/works}` | verb: with I and they / with she, he and a noun |
| `{am/is/are}` | verb: with I / with she, he and a noun / with they |
| `<V>` or `<City/Region>` | a slot for a value |
| `<a V>` | the same with its article, a or an |
| `[just|only|]` | one of these, perhaps nothing |
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from random import Random

_TOKEN: Final = re.compile(r"\{([^{}]*)\}|<([^<>]*)>|\[([^\[\]]*)\]")


class MarkupError(ValueError):
    """A frame that is not of the markup."""


@dataclass(frozen=True, slots=True)
class Person:
    """How a subject is spoken of.

    Attributes:
        pronouns: nominative, object, possessive determiner, possessive pronoun, reflexive.
        number: 0 for I, 1 for the third person singular, 2 for they.
        role: a noun phrase for the first mention ("the trainee"), None for a pronoun.
    """

    pronouns: tuple[str, str, str, str, str]
    number: int
    role: str | None = None


I: Final = Person(("I", "me", "my", "mine", "myself"), 0)  # noqa: E741
SHE: Final = Person(("she", "her", "her", "hers", "herself"), 1)
HE: Final = Person(("he", "him", "his", "his", "himself"), 1)
THEY: Final = Person(("they", "them", "their", "theirs", "themself"), 2)

_CASES: Final = "SOPQR"


@dataclass(frozen=True, slots=True)
class Slot:
    """A place for a value in a rendered frame."""

    name: str


Piece = str | Slot


def render(
    frame: str,
    person: Person,
    values: Mapping[str, str],
    random: Random,
    article: Callable[[str], str],
) -> list[Piece]:
    """Choose, inflect and open a frame: text, and slots where values go.

    Args:
        frame: the markup.
        person: of whom it speaks; a role stands at the first mention only.
        values: slot name to value, needed for the articles.
        random: chooses among alternatives.
        article: value to `a` or `an`.

    Raises:
        MarkupError: the frame is not of the markup, or a slot has no value.
    """
    voice = _Voice(person)
    pieces: list[Piece] = []

    def add(text: str) -> None:
        position = 0
        for match in _TOKEN.finditer(text):
            pieces.append(_plain(text[position : match.start()], frame))
            position = match.end()
            if match[3] is not None:
                add(random.choice(match[3].split("|")))
            elif match[2] is not None:
                name, with_article = _slot_name(match[2])
                if name not in values:
                    raise MarkupError(f"no value for <{name}> in {frame!r}")
                if with_article:
                    pieces.append(article(values[name]) + " ")
                pieces.append(Slot(name))
            else:
                pieces.append(voice.word(match[1], frame))
        pieces.append(_plain(text[position:], frame))

    add(frame)
    return [piece for piece in pieces if piece]


class _Voice:
    """Inflects the words of one frame: the role at the first mention, pronouns after."""

    def __init__(self, person: Person) -> None:
        self._person = person
        self._named = person.role is None
        # A role is singular, whatever its pronoun.
        self._number = person.number if self._named else 1

    def word(self, code: str, frame: str) -> str:
        if len(code) == 1 and code in _CASES:
            return self._mention(code)
        match code.split("/"):
            case [plural, singular]:
                return singular if self._number == 1 else plural
            case [first, singular, plural]:
                return (first, singular, plural)[self._number]
            case _:
                raise MarkupError(f"unknown {{{code}}} in {frame!r}")

    def _mention(self, case: str) -> str:
        role = self._person.role
        if role is not None and not self._named:
            self._named = True
            return role + ("'" if role.endswith("s") else "'s") if case in "PQ" else role
        if case == "S":
            self._number = self._person.number
        return self._person.pronouns[_CASES.index(case)]


def _slot_name(text: str) -> tuple[str, bool]:
    return (text[2:], True) if text.startswith("a ") else (text, False)


def _plain(text: str, frame: str) -> str:
    if re.search(r"[{}<>\[\]|]", text):
        raise MarkupError(f"stray markup in {frame!r}")
    return text


def plural_of(frame: str, pronoun: str) -> str:
    """A frame about both people of a pair, `{they} {their} {them}`, as they or we.

    Args:
        frame: the markup, which `render` takes afterwards.
        pronoun: `they` or `we`.
    """
    forms = {
        "they": ("they", "their", "them", "They", "Their"),
        "we": ("we", "our", "us", "We", "Our"),
    }[pronoun]
    codes = ("{they}", "{their}", "{them}", "{They}", "{Their}")
    for code, form in zip(codes, forms, strict=True):
        frame = frame.replace(code, form)
    return frame
