"""The style of figures, saving them, and the choice and names of the systems they show."""

from __future__ import annotations

import io
import warnings
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any, Final

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
"""Width of a two-column page's text in inches."""

GREY: Final = "#595959"
LIGHT: Final = "#D9D9D9"
BAND: Final = "#F0F0F0"

STYLE: Final[Mapping[Any, Any]] = {
    "font.family": "DejaVu Sans",  # part of matplotlib, so the same everywhere
    "font.size": 8,
    "text.parse_math": False,  # a name may contain two $
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

_LONGEST_NAME: Final = 60


# The colours of Okabe and Ito, which colour-blind readers can distinguish; markers and dashes
# distinguish systems in greyscale.
SERIES: Final[Sequence[Mapping[str, Any]]] = (
    {"color": "#0072B2", "marker": "o", "linestyle": "-"},
    {"color": "#D55E00", "marker": "s", "linestyle": (0, (4, 1.5))},
    {"color": "#009E73", "marker": "^", "linestyle": (0, (6, 1.5, 1, 1.5))},
    {"color": "#000000", "marker": "D", "linestyle": (0, (1, 1.2))},
    {"color": "#CC79A7", "marker": "v", "linestyle": (0, (2.5, 1, 2.5, 1, 1, 1))},
    {"color": "#E69F00", "marker": "P", "linestyle": (0, (3, 3))},
)
DOTS: Final[Sequence[Mapping[str, Any]]] = tuple(
    {**series, "linestyle": "none"} for series in SERIES
)
"""The series without their lines."""


def keys_of(runs: Sequence[RunName], *, line: bool = True) -> list[Line2D]:
    """Return the legend entries of runs, at most as many as `SERIES`."""
    names = names_of(runs)
    return [
        Line2D([], [], **series, markeredgecolor="white", label=names[run])
        for run, series in zip(runs, SERIES if line else DOTS, strict=False)
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
    """Write a small grey remark below or above the axes.

    Its anchor `at` has x in data coordinates, or as a fraction of the width if `x_data` is False,
    and y as a fraction of the height. `shift` is the offset from it in points; with a positive y
    the text is above it.
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
    """Save a figure as SVG and PNG.

    Raises:
        ResultsError: a file cannot be written.
    """
    paths = []
    for kind in ("svg", "png"):
        content = file_of(figure, kind)
        path = folder / f"{name}.{kind}"
        with writing(path):
            folder.mkdir(parents=True, exist_ok=True)
            with replacing(path) as file:
                file.write(content)
        paths.append(path)
    return paths


def file_of(figure: Figure, kind: str) -> bytes:
    """Return an SVG or PNG file without a date, so that equal figures give equal bytes."""
    metadata: dict[str, Any] = {"Date": None} if kind == "svg" else {"Software": None}
    content = io.BytesIO()
    with rc_context(dict(STYLE)), warnings.catch_warnings():
        # Missing glyphs and overlong names are visible in the figure.
        warnings.filterwarnings("ignore", "Glyph|constrained_layout", UserWarning)
        figure.savefig(content, format=kind, metadata=metadata)
    return content.getvalue()


def shown(points: Sequence[CurvePoint], task: Task, metric: str) -> list[RunName]:
    """Choose the runs of a figure as `best` does."""
    return best(
        (point.run, point.samples, point.value)
        for point in points
        if (point.run.task, point.metric, point.factor) == (task, metric, "characters")
    )


def best(scores: Iterable[tuple[RunName, int, float]]) -> list[RunName]:
    """Choose complete runs, at most as many as `SERIES`, sorted by mean score, oracles last.

    They are on one set, or sets taken as one: that with most complete systems; with ties, with the
    most samples. The best run of each model is chosen first, then the second best and so on, then
    oracles.

    Args:
        scores: run, number of samples and mean score over them; any number for each run.
    """
    counts: Counter[RunName] = Counter()
    sums: dict[RunName, float] = defaultdict(float)
    for run, samples, value in scores:
        counts[run] += samples
        sums[run] += samples * value
    kept = preferred(counts)
    if not kept:
        return []
    sizes: defaultdict[str, list[int]] = defaultdict(list)
    for run in kept:
        sizes[run.dataset].append(counts[run])
    dataset = min(sizes, key=lambda name: (-len(sizes[name]), -max(sizes[name]), name))
    ordered = sorted(
        (run for run in kept if run.dataset == dataset),
        key=lambda run: (run.oracle, -sums[run] / counts[run], run.model, run.strategy),
    )
    # Oracles after the others; then by the number of better runs of the same model.
    better: Counter[tuple[bool, str]] = Counter()
    turns: dict[RunName, tuple[bool, int]] = {}
    for run in ordered:
        turns[run] = run.oracle, better[run.oracle, run.model]
        better[run.oracle, run.model] += 1
    chosen = sorted(ordered, key=lambda run: turns[run])[: len(SERIES)]
    return [run for run in ordered if run in chosen]


def names_of(runs: Sequence[RunName]) -> Mapping[RunName, str]:
    """Return names without provider and endpoint, or full names where those are not unique."""
    models = {run: run.model.rpartition("@")[0] or run.model for run in runs}
    short = {run: _name(run, model.rpartition("/")[2]) for run, model in models.items()}
    counts = Counter(short.values())
    return {
        run: name if counts[name] == 1 else _name(run, run.model) for run, name in short.items()
    }


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
