"""`pii-bench compare`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from pii_bench.cli.options import add_dataset, add_json, add_results, add_task, positive
from pii_bench.cli.terminal import echo, echo_json, log_left_out
from pii_bench.datasets.catalog import ALL, load_dataset
from pii_bench.errors import PiiBenchError
from pii_bench.escaping import markdown_table
from pii_bench.ranking.rows import find_rows
from pii_bench.ranking.scores import RESAMPLES
from pii_bench.ranking.significance import EXACT_UP_TO, FLIPS, Comparison, compare, holm
from pii_bench.ranking.stored import collect
from pii_bench.tasks import Task

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from pii_bench.ranking.rows import Row
    from pii_bench.ranking.scores import Interval

# The headline first; Ent-F1 where one of two detections names no subjects.
_FIGURES: Final = {"strict_f1": "Strict-F1", "h": "H", "f1": "F1", "ent_f1": "Ent-F1"}

_METHOD: Final = f"""\
Difference: A - B. In brackets: 95 % intervals, bootstrap of descriptions, {RESAMPLES:,} resamples.
p: two-sided paired permutation test, answers exchanged by description ({FLIPS:,} times; in all
ways, where no more than {EXACT_UP_TO} descriptions differ), with Holm's correction for the lines of
this table.
Detectable: the difference that these samples would show with a chance of 80 %.
H: the harmonic mean of mean protection and mean retention; of one sample, that of its own two."""


_Rows: TypeAlias = "Mapping[tuple[str, Task], Row]"


@dataclass(frozen=True, slots=True)
class _Line:
    """Two rows of one dataset and task, and one figure of them; `p` is corrected."""

    first: Row
    second: Row
    figure: str
    comparison: Comparison
    p: float


DESCRIPTION: Final = (
    "Compare two systems on the samples that both answered: the difference, its 95 % "
    "interval, p by a paired permutation test with Holm's correction over the lines printed, "
    "and the samples where they differ most."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    for name in ("first", "second"):
        parser.add_argument(
            name,
            metavar="SYSTEM",
            help="MODEL+STRATEGY, MODEL:STRATEGY or MODEL, as in the leaderboard; run:, reference: "
            "or submitted: before it names the source",
        )
    add_dataset(parser)
    add_task(parser)
    parser.add_argument(
        "--samples",
        type=positive,
        default=5,
        metavar="N",
        help="of each line, show the N samples that differ most (default: %(default)s)",
    )
    add_json(parser)
    add_results(parser, stored=True)


def run(arguments: argparse.Namespace) -> bool:
    """Compare two systems on every dataset and task that stored runs of both answer.

    Returns:
        Whether each line of the table is of all samples of its dataset.

    Raises:
        PiiBenchError: a name that stands for no rows or several, the same rows twice, or no
            sample in common.
    """
    collection = collect(arguments.results)
    log_left_out(collection.left_out)
    dataset = _dataset(collection.rows, arguments.dataset)
    rows = [row for row in collection.rows if arguments.task in {ALL, row.task}]
    names = (arguments.first, arguments.second)
    first, second = (find_rows(rows, name) for name in names)
    lines = _lines(first, second, dataset)
    if not lines:
        raise PiiBenchError(_nothing(names, first, second))
    if arguments.json:
        echo_json(_records(names, lines))
    else:
        echo(f"A: {names[0]}\nB: {names[1]}\n\n{_table(lines)}\n\n{_METHOD}")
        for line in lines:
            echo(f"\n{_samples(line, arguments.samples)}")
    return all(line.first.complete and line.second.complete for line in lines)


def _dataset(rows: Sequence[Row], source: str) -> str:
    """The name of a dataset in the leaderboard, from that or from what `run` takes."""
    if source in {ALL, *(row.dataset for row in rows)}:
        return source
    return load_dataset(source).name


def _lines(first: _Rows, second: _Rows, dataset: str) -> list[_Line]:
    """What both answer and is not one and the same run, in the order of the leaderboard."""
    order = list(Task)
    keys = [key for key in first.keys() & second.keys() if dataset in {ALL, key[0]}]
    lines = []
    for key in sorted(keys, key=lambda key: (key[0], order.index(key[1]))):
        one, other = first[key], second[key]
        both = one.by_sample.keys() & other.by_sample.keys()
        figure = next((name for name in _FIGURES if name in both), None)
        if one is other or figure is None:
            continue
        comparison = compare(one.by_sample[figure], other.by_sample[figure])
        if comparison is not None:
            lines.append(_Line(one, other, figure, comparison, comparison.p))
    corrected = holm([line.p for line in lines])
    return [replace(line, p=p) for line, p in zip(lines, corrected, strict=True)]


def _nothing(names: tuple[str, str], first: _Rows, second: _Rows) -> str:
    shared = first.keys() & second.keys()
    if shared and all(first[key] is second[key] for key in shared):
        return f"{names[0]!r} and {names[1]!r} are the same rows"
    told = (
        f"{name!r} has {', '.join(f'{task} on {dataset}' for dataset, task in rows)}"
        for name, rows in zip(names, (first, second), strict=True)
    )
    return f"no sample in common: {'; '.join(told)}"


def _table(lines: Sequence[_Line]) -> str:
    body = [
        [
            line.first.dataset,
            line.first.task,
            _FIGURES[line.figure],
            _common(line),
            _with_interval(line.comparison.first.figure, line.comparison.first_interval),
            _with_interval(line.comparison.second.figure, line.comparison.second_interval),
            _with_interval(
                line.comparison.difference, line.comparison.difference_interval, sign="+"
            ),
            "< 0.001" if line.p < 0.001 else f"{line.p:.3f}",
            "-" if line.comparison.detectable is None else f"{line.comparison.detectable:.3f}",
        ]
        for line in lines
    ]
    header = ["Dataset", "Task", "Figure", "Samples", "A", "B", "Difference", "p", "Detectable"]
    return markdown_table(header, body)


def _records(names: tuple[str, str], lines: Sequence[_Line]) -> list[dict[str, Any]]:
    """The lines of the table with all digits: keys of A and of B begin with `a` and `b`."""
    return [
        {
            "dataset": line.first.dataset,
            "task": line.first.task,
            "figure": line.figure,
            "samples": len(line.comparison.first.ids),
            "of": line.first.gold,
            **_side("a", names[0], line.first, line.comparison.first.figure),
            "a_interval": _bounds(line.comparison.first_interval),
            **_side("b", names[1], line.second, line.comparison.second.figure),
            "b_interval": _bounds(line.comparison.second_interval),
            "difference": line.comparison.difference,
            "difference_interval": _bounds(line.comparison.difference_interval),
            "p": line.p,
            "detectable": line.comparison.detectable,
        }
        for line in lines
    ]


def _side(side: str, name: str, row: Row, value: float) -> dict[str, Any]:
    return {
        f"{side}_system": name,
        f"{side}_source": row.source,
        f"{side}_oracle": row.oracle,
        side: value,
    }


def _bounds(interval: Interval | None) -> list[float] | None:
    return None if interval is None else [interval.low, interval.high]


def _common(line: _Line) -> str:
    """The samples in common of those there are, and what else a reader must know of a row."""
    parts = [f"{len(line.comparison.first.ids)}/{line.first.gold}"]
    for side, row in (("A", line.first), ("B", line.second)):
        marks = [str(row.source)] if line.first.source is not line.second.source else []
        marks += ["oracle"] if row.oracle else []
        if marks:
            parts.append(f"{side}: {', '.join(marks)}")
    return "; ".join(parts)


def _samples(line: _Line, count: int) -> str:
    higher, lower, equal = line.comparison.tally()
    title = f"{line.first.dataset}: {line.first.task}, {_FIGURES[line.figure]}"
    tally = f"A is higher on {higher} samples, B on {lower}; {equal} are equal"
    found = line.comparison.most_different(count)
    if not found:
        return f"{title}: {tally}"
    body = [[sample_id, f"{a:.3f}", f"{b:.3f}", f"{a - b:+.3f}"] for sample_id, a, b in found]
    header = ["Sample", "A", "B", "Difference"]
    table = markdown_table(header, body)
    return f"{title}: {tally}; where they differ most:\n\n{table}"


def _with_interval(mean: float, interval: Interval | None, sign: str = "") -> str:
    if interval is None:
        return f"{mean:{sign}.3f}"
    return f"{mean:{sign}.3f} [{interval.low:{sign}.3f}, {interval.high:{sign}.3f}]"
