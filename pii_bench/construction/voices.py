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
class Voices:
    """The lists that a commission draws from.

    Attributes:
        who: kind of writer, one of `WRITERS`, to the people of that kind.
        on: what they type on.
        manner: their mood, schooling or habit.
        domains: what queries are about.
        registers: kind of text to the kinds of writers that it has.
    """

    who: Mapping[str, tuple[str, ...]]
    on: tuple[str, ...]
    manner: tuple[str, ...]
    domains: tuple[str, ...]
    registers: Mapping[str, tuple[str, ...]]

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
            who={name: tuple(found[name]) for name in WRITERS},
            on=tuple(found["on"]),
            manner=tuple(found["manner"]),
            domains=tuple(found["domains"]),
            registers={name: tuple(writers) for name, writers in found["registers"].items()},
        )
    except (OSError, tomllib.TOMLDecodeError, KeyError) as error:
        raise InputFileError(path, f"no table of voices: {error}") from error
