"""One measure of quality, over several sets."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


class Unit(Enum):
    """What a figure counts. The value is its format."""

    SHARE = "{:.2%}"
    SCORE = "{:.3f}"
    COUNT = "{:,.0f}"


@dataclass(frozen=True, slots=True)
class Measure:
    """A figure for each set.

    Attributes:
        name: what is measured.
        unit: of the figures and of the goal.
        values: figure by set.
        goal: every figure should be below it; None where nothing is asked.
        examples: by set, the text that the figure is about, entities blanked.
    """

    name: str
    unit: Unit
    values: Mapping[str, float]
    goal: float | None = None
    examples: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_met(self) -> bool | None:
        """Whether every figure is below the goal; None without a goal."""
        if self.goal is None:
            return None
        return all(value < self.goal for value in self.values.values())
