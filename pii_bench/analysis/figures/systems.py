"""Which systems a figure shows, on which set, in which order, under which names."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pii_bench.analysis.figures.style import SERIES
from pii_bench.analysis.runs import preferred
from pii_bench.escaping import visible
from pii_bench.prompting.strategies import STRATEGIES
from pii_bench.tasks import Task

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pii_bench.analysis.curves import CurvePoint
    from pii_bench.analysis.runs import RunName

_LONGEST_NAME: Final = 60


@dataclass(frozen=True, slots=True)
class Shown:
    """What a figure shows.

    Attributes:
        dataset: the set, or sets taken as one, that most systems are complete on; of several
            the one with the most samples.
        runs: no more than can be told apart: the best of each model, then the second best and
            so on, and those that are told gold if there is room. The best first, those last.
    """

    dataset: str
    runs: tuple[RunName, ...]


def shown(points: Sequence[CurvePoint], task: Task, metric: str) -> Shown | None:
    """Choose the systems of a figure; None where no run is complete.

    Args:
        points: of all curves: every run has some, whatever else is drawn of it.
        task: what was asked.
        metric: column of the leaderboard.
    """
    return best(
        (point.run, point.samples, point.value)
        for point in points
        if (point.run.task, point.metric, point.factor) == (task, metric, "characters")
    )


def best(figures: Iterable[tuple[RunName, int, float]]) -> Shown | None:
    """Choose among runs by their mean figure; None where no run is complete.

    Args:
        figures: of each run as many as there are: how many samples, and the mean over them.
    """
    totals: dict[RunName, list[float]] = defaultdict(lambda: [0, 0.0])
    for run, samples, value in figures:
        totals[run][0] += samples
        totals[run][1] += samples * value
    kept = preferred(totals)
    if not kept:
        return None
    systems = Counter(run.dataset for run in kept)
    sizes = {run.dataset: totals[run][0] for run in kept}
    dataset = min(systems, key=lambda name: (-systems[name], -sizes[name], name))
    ordered = sorted(
        (run for run in kept if run.dataset == dataset),
        key=lambda run: (run.oracle, -totals[run][1] / totals[run][0], run.model, run.strategy),
    )
    seen: Counter[tuple[str, bool]] = Counter()
    turns: dict[RunName, tuple[bool, int]] = {}
    for run in ordered:
        turns[run] = run.oracle, seen[run.model, run.oracle]
        seen[run.model, run.oracle] += 1
    chosen = set(sorted(ordered, key=lambda run: turns[run])[: len(SERIES)])
    return Shown(dataset, tuple(run for run in ordered if run in chosen))


def names_of(runs: Sequence[RunName]) -> Mapping[RunName, str]:
    """Short names: without provider and host, unless two would be alike."""
    short = {run: _name(run, _short(run.model)) for run in runs}
    times = Counter(short.values())
    return {run: name if times[name] == 1 else _name(run, run.model) for run, name in short.items()}


def _name(run: RunName, model: str) -> str:
    name = visible(model)
    if len(name) > _LONGEST_NAME:
        name = f"{name[:_LONGEST_NAME]}..."
    if run.task is not Task.DETECTION and run.strategy:
        # A composed system is written as on the command line.
        prompted = run.strategy.partition("+")[0] in STRATEGIES
        strategy = visible(run.strategy)
        name += f", {strategy}" if prompted else f"+{strategy}"
    return f"{name} (oracle)" if run.oracle else name


def _short(model: str) -> str:
    return model.rpartition("/")[2].partition("@")[0]
