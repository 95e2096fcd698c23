"""The sets that ship: what the recorded texts make."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pii_bench.construction.commissions import ORDERS
from pii_bench.construction.derived import CONVERSATIONS, TRAIN_TWINS, TWINS, TWINS_PER_SOURCE
from pii_bench.construction.frontier import FRONTIER, FRONTIER_SIZE
from pii_bench.construction.hard import hard_set
from pii_bench.construction.other import OTHER, OTHER_SIZE
from pii_bench.datasets.check.sets import CANARY, OUR_SETS
from pii_bench.errors import PiiBenchError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pii_bench.construction.recorded import Recorded
    from pii_bench.datasets.sample import Sample

HARD_PER_SOURCE: Final = 100

TEXTS: Final[Mapping[str, int]] = {
    **{name: order.size for name, order in ORDERS.items()},
    TWINS: 2 * TWINS_PER_SOURCE,
    TRAIN_TWINS: 480,
    "distract": CONVERSATIONS,
    FRONTIER: FRONTIER_SIZE,
    OTHER: OTHER_SIZE,
}
"""How many texts, or texts with twins, are recorded for each written set."""


def build_sets(recorded: Recorded) -> dict[str, tuple[Sample, ...]]:
    """Make every set from the recorded texts; hard is chosen from single and multi.

    Returns:
        Name to samples. The first sample of each test set has the canary.

    Raises:
        PiiBenchError: texts of a set are missing.
    """
    for name in TEXTS:
        if len(recorded.sets[name]) != TEXTS[name]:
            there = len(recorded.sets[name])
            raise PiiBenchError(
                f"{name}: {there} texts are recorded in {recorded.folder / name}, not {TEXTS[name]}"
            )
    sets = {name: tuple(recorded.samples(name)) for name in TEXTS}
    sets["hard"] = hard_set([sets["single"], sets["multi"]], HARD_PER_SOURCE)
    return {
        name: _with_canary(samples) if name in OUR_SETS else samples
        for name, samples in sets.items()
    }


def _with_canary(samples: Iterable[Sample]) -> tuple[Sample, ...]:
    first, *rest = samples
    return (replace(first, meta={**first.meta, "canary": CANARY}), *rest)
