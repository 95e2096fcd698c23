"""How figures look and become files, and which systems they show."""

from __future__ import annotations

import io
import warnings
from collections import Counter, defaultdict
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal

from matplotlib import rc_context
from matplotlib.lines import Line2D

from pii_bench.analysis.runs import preferred
from pii_bench.escaping import visible
from pii_bench.files import replacing, writing
from pii_bench.prompting.strategies import STRATEGIES
from pii_bench.tasks import Task

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from pii_bench.analysis.means import CurvePoint
    from pii_bench.analysis.runs import RunName


WIDTH: Final = 7.0
"""Inches: the text of a page in two columns."""

GREY: Final = "#595959"
LIGHT: Final = "#D9D9D9"
BAND: Final = "#F0F0F0"

STYLE: Final[Mapping[Any, Any]] = MappingProxyType(
    {
        "font.family": "DejaVu Sans",  # comes with matplotlib, so it is the same everywhere
        "font.size": 8,
        "text.parse_math": False,  # a name with two $ is no formula
        "axes.labelsize": 8,
        "axes.titlesize": 8,
        "axes.linewidth": 0.6,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.axisbelow": True,
        "axes.grid": True,
        "axes.grid.axis": "y",
        "grid.color": LIGHT,
        "grid.linewidth": 0.5,
        "xtick.labelsize": 7,
        "ytick.labelsize": 7,
        "xtick.major.width": 0.6,
        "ytick.major.width": 0.6,
        "xtick.major.size": 2.5,
        "ytick.major.size": 2.5,
        "legend.fontsize": 7.5,
        "legend.frameon": False,
        "legend.handlelength": 3.2,
        "lines.linewidth": 1.2,
        "lines.markersize": 5.5,
        "lines.markeredgewidth": 0.4,
        "figure.dpi": 100,
        "savefig.dpi": 300,
        "svg.hashsalt": "pii_bench",
        "svg.fonttype": "path",
    }
)

_LONGEST_NAME: Final = 60


@dataclass(frozen=True, slots=True)
class Series:
    """How one system is drawn: told apart by colour, in grey by marker and dashes."""

    color: str
    marker: str
    dashes: Literal["-"] | tuple[float, tuple[float, ...]]


# Okabe and Ito's colours, which the colour-blind tell apart.
SERIES: Final = (
    Series("#0072B2", "o", "-"),
    Series("#D55E00", "s", (0, (4, 1.5))),
    Series("#009E73", "^", (0, (6, 1.5, 1, 1.5))),
    Series("#000000", "D", (0, (1, 1.2))),
    Series("#CC79A7", "v", (0, (2.5, 1, 2.5, 1, 1, 1))),
    Series("#E69F00", "P", (0, (3, 3))),
)


def keys_of(runs: Sequence[RunName], *, line: bool = True) -> list[Line2D]:
    """The samples of runs for a legend, as many as `SERIES` at most; markers alone without line."""
    names = names_of(runs)
    return [
        Line2D(
            [],
            [],
            color=series.color,
            marker=series.marker,
            markeredgecolor="white",
            linestyle=series.dashes if line else "none",
            label=names[run],
        )
        for run, series in zip(runs, SERIES, strict=False)
    ]


def note(
    panel: Axes,
    text: str,
    at: tuple[float, float],
    shift: tuple[float, float],
    *,
    x_data: bool = True,
    align: str = "center",
) -> None:
    """Write a small grey remark under or over the axes.

    Args:
        panel: where.
        text: what.
        at: the point that it is placed by: y as a part of the panel's height, x in its data
            or likewise.
        shift: from there, in points; upwards the text begins there, else it ends there.
        x_data: whether x is in data.
        align: the side of the text that is at the point.
    """
    panel.annotate(
        text,
        at,
        shift,
        xycoords=("data" if x_data else "axes fraction", "axes fraction"),
        textcoords="offset points",
        ha=align,
        va="bottom" if shift[1] > 0 else "top",
        fontsize=6.5,
        color=GREY,
    )


def save(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Write a figure as SVG and PNG, without a date: equal figures give equal bytes.

    Raises:
        ResultsError: a file cannot be written.
    """
    paths = []
    metadata: dict[str, dict[str, Any]] = {"svg": {"Date": None}, "png": {"Software": None}}
    for kind, facts in metadata.items():
        content = io.BytesIO()
        with rc_context(dict(STYLE)), warnings.catch_warnings():
            # The font lacks a script, or a name leaves no room: the figure shows it.
            warnings.filterwarnings("ignore", "Glyph|constrained_layout", UserWarning)
            figure.savefig(content, format=kind, metadata=facts)
        path = folder / f"{name}.{kind}"
        with writing(path):
            folder.mkdir(parents=True, exist_ok=True)
            with replacing(path) as file:
                file.write(content.getvalue())
        paths.append(path)
    return paths


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
    counts: Counter[RunName] = Counter()
    sums: dict[RunName, float] = defaultdict(float)
    for run, samples, value in figures:
        counts[run] += samples
        sums[run] += samples * value
    kept = preferred(counts)
    if not kept:
        return None
    systems = Counter(run.dataset for run in kept)
    sizes: dict[str, int] = {}
    for run in kept:
        sizes[run.dataset] = max(sizes.get(run.dataset, 0), counts[run])
    dataset = min(systems, key=lambda name: (-systems[name], -sizes[name], name))
    ordered = sorted(
        (run for run in kept if run.dataset == dataset),
        key=lambda run: (run.oracle, -sums[run] / counts[run], run.model, run.strategy),
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
