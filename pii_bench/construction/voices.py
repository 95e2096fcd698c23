"""Who types a text and how, kinds of text and domains of queries: `data/texts/voices.toml`."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

from pii_bench.errors import InputFileError
from pii_bench.resources import DATA

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

TEXTS: Final = DATA / "texts"

WRITERS: Final = ("own", "desk", "near")
"""The person of the text, somebody who deals with them for a living, somebody near to them."""

# A resume and a self-introduction have one person.
_OF_ONE: Final = frozenset({"resume", "self-introduction", "profile", "reference-letter"})


@dataclass(frozen=True, slots=True)
class Theme:
    """What a text is about.

    Attributes:
        desk: who deals with such matters for a living.
        facts: categories that come up there.
    """

    desk: tuple[str, ...]
    facts: frozenset[str]


@dataclass(frozen=True, slots=True)
class Voices:
    """The lists that a commission draws from.

    Attributes:
        own: people who write about themselves; `near`, about somebody near to them.
        on: what they type on.
        manner: their mood, schooling or habit.
        domains: what queries are about.
        registers: kind of text to the kinds of writers that it has.
        themes: name to theme.
    """

    own: tuple[str, ...]
    near: tuple[str, ...]
    on: tuple[str, ...]
    manner: tuple[str, ...]
    domains: tuple[str, ...]
    registers: Mapping[str, tuple[str, ...]]
    themes: Mapping[str, Theme]

    def who(self, writer: str, theme: str) -> tuple[str, ...]:
        """People of a kind of writer who may write of a theme."""
        if writer == "desk":
            return self.themes[theme].desk
        return self.own if writer == "own" else self.near

    def registers_of(self, writer: str, people: int) -> tuple[str, ...]:
        """Kinds of text that a kind of writer writes about one person or two."""
        return tuple(
            name
            for name, writers in self.registers.items()
            if writer in writers and (people == 1 or name not in _OF_ONE)
        )


@cache
def load_voices(path: Path = TEXTS / "voices.toml") -> Voices:
    """Read the lists.

    Raises:
        InputFileError: the file is absent or not of its format.
    """
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
        return Voices(
            own=tuple(found["own"]),
            near=tuple(found["near"]),
            on=tuple(found["on"]),
            manner=tuple(found["manner"]),
            domains=tuple(found["domains"]),
            registers={name: tuple(writers) for name, writers in found["registers"].items()},
            themes={
                name: Theme(tuple(theme["desk"]), frozenset(theme["facts"]))
                for name, theme in found["themes"].items()
            },
        )
    except (OSError, tomllib.TOMLDecodeError, KeyError) as error:
        raise InputFileError(path, f"no table of voices: {error}") from error
