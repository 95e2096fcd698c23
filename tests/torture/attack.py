"""Attacks and their trials."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Trial:
    """The result of one trial of an attack.

    Attributes:
        name: The variant that was tried.
        broken: Expectations that were not met.
    """

    name: str
    broken: tuple[str, ...] = ()

    @classmethod
    def of(cls, name: str, checks: dict[str, bool]) -> Trial:
        """Return a trial; `checks` maps each expectation to whether it was met."""
        return cls(name, tuple(expectation for expectation, met in checks.items() if not met))


@dataclass(frozen=True, slots=True)
class Attack:
    """One kind of attack.

    Attributes:
        area: The attacked area.
        name: A description of the attack.
        holds: A description of what is expected of each trial.
        run: Runs the trials in an empty folder.
    """

    area: str
    name: str
    holds: str
    run: Callable[[Path], Iterator[Trial]]
