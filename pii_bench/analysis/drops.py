"""How much lower a system is on hard and on distract than on single and multi together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from pii_bench.analysis.runs import BASE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pii_bench.analysis.headlines import Headline
    from pii_bench.analysis.runs import RunName

HARDER: Final = ("hard", "distract")


@dataclass(frozen=True, slots=True)
class Drop:
    """A figure of a system on a harder set, against that on single and multi together.

    The samples of hard stand in single and multi too: its drop is from a mean that they are
    part of.

    Attributes:
        run: the run on the harder set.
        metric: column of the leaderboard.
        base: the figure over all samples of single and multi.
        value: the figure on the harder set.
    """

    run: RunName
    metric: str
    base: float
    value: float

    @property
    def drop(self) -> float:
        """How much lower; below 0 where it is higher."""
        return self.base - self.value

    @property
    def relative(self) -> float | None:
        """The drop as a share of the base; None where the base is 0."""
        return self.drop / self.base if self.base else None


def drops(headlines: Sequence[Headline]) -> list[Drop]:
    """The drops of every system that is complete on single, multi and a harder set."""
    complete = {(each.run, each.metric): each for each in headlines if each.run.complete}
    found: list[Drop] = []
    for (run, metric), each in complete.items():
        base = complete.get((replace(run, dataset="+".join(BASE)), metric))
        if run.dataset in HARDER and base is not None:
            found.append(Drop(run, metric, base.value, each.value))
    return found
