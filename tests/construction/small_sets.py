"""Twenty samples of one person and twenty of two, with what they were made of."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from pii_bench.construction.build import Builder, Built, Plan
from pii_bench.datasets.check import sample_problems
from pii_bench.taxonomy import PiiType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pii_bench.construction.pools import Split
    from pii_bench.datasets.sample import Sample

SIZE = 20


@dataclass(frozen=True, slots=True)
class SmallSets:
    builder: Builder
    singles: Sequence[Built]
    pairs: Sequence[Built]

    @property
    def all(self) -> list[Built]:
        return [*self.singles, *self.pairs]


def faults(sample: Sample) -> list[str]:
    return [problem.rule for problem in sample_problems(sample)]


def plan(split: Split, people: int, size: int = SIZE) -> Plan:
    """Seven facts a person and the name: one of each type, two of the demographics."""
    subjects = people * size
    types = dict.fromkeys(PiiType, subjects) | {PiiType.DEM: 2 * subjects}
    name = {1: "single", 2: "multi"}[people]
    return Plan(name, split, people, size, types, {1: 893, 2: 653}[people], {1: 1, 2: 2, 3: 1})


def build(split: Split, seed: str, size: int = SIZE) -> SmallSets:
    builder = Builder(split, seed, faults)
    singles, pairs = (list(builder.build(plan(split, people, size))) for people in (1, 2))
    return SmallSets(builder, singles, pairs)


@cache
def small_sets(split: Split) -> SmallSets:
    return build(split, "a seed")
