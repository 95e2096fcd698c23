"""What an attack is, and what became of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Trial:
    """One thing that was tried.

    Attributes:
        name: what it was.
        broken: what should have held and did not; empty where all did.
    """

    name: str
    broken: tuple[str, ...] = ()

    @classmethod
    def of(cls, name: str, checks: dict[str, bool]) -> Trial:
        """A trial of which each thing in words held or did not."""
        return cls(name, tuple(what for what, held in checks.items() if not held))


@dataclass(frozen=True, slots=True)
class Attack:
    """One kind of attack.

    Attributes:
        area: what is attacked.
        name: the attack in words.
        holds: what must hold of each trial, in words.
        run: tries it in an empty folder, again and again.
    """

    area: str
    name: str
    holds: str
    run: Callable[[Path], Iterator[Trial]]
