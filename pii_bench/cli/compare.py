"""`pii-bench compare`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from pii_bench.cli.options import add_options, positive, stored_results
from pii_bench.cli.terminal import bounds, echo, echo_json, formatted, log_left_out, with_interval
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

# The first that both have; a detector that names no subjects has no Strict-F1.
_FIGURES: Final = {"strict_f1": "Strict-F1", "h": "H", "f1": "F1", "ent_f1": "Ent-F1"}

_METHOD: Final = f"""\
Difference: A - B. In brackets: 95 % intervals, {RESAMPLES:,} bootstrap resamples of descriptions.
p: two-sided paired permutation test, answers exchanged by description ({FLIPS:,} random flips; all
flips if at most {EXACT_UP_TO} descriptions differ), with Holm's correction for the lines of this
table.
Detectable: the difference that these samples would show with a chance of 80 %.
H: the harmonic mean of mean protection and mean retention; for one sample, of its own two."""

_Rows: TypeAlias = "Mapping[tuple[str, Task], Row]"


@dataclass(frozen=True, slots=True)
class _Line:
    """One figure of two rows of the same dataset and task; `p` is corrected."""

    first: Row
    second: Row
    figure: str
    comparison: Comparison
    p: float


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command and its arguments."""
    parser.description = (
        "Compare two systems on the samples that both answered: the difference with its 95 % "
        "interval, p of a paired permutation test with Holm's correction, and the samples where "
        "they differ most."
    )
    parser.add_argument(
        "first",
        metavar="SYSTEM",
        help="MODEL+STRATEGY, MODEL:STRATEGY or MODEL, as in the leaderboard; the prefix run:, "
        "reference: or submitted: selects the source",
    )
    parser.add_argument("second", metavar="SYSTEM", help="the system to compare it with")
    add_options(parser, "--dataset", "--task")
    parser.add_argument(
        "--samples",
        type=positive,
        default=5,
        metavar="N",
        help="for each line, show the N samples that differ most (default: %(default)s)",
    )
    add_options(parser, "--json")
    add_options(parser, "--results", type=stored_results)


def run(arguments: argparse.Namespace) -> bool:
    """Compare two systems where both have runs; True if every line covers all samples."""
    collection = collect(arguments.results)
    log_left_out(collection.left_out)
    dataset = arguments.dataset
    if dataset not in {ALL, *(row.dataset for row in collection.rows)}:
        # A name or path as for `run`, instead of the name in the leaderboard.
        dataset = load_dataset(dataset).name
    rows = [row for row in collection.rows if arguments.task in {ALL, row.task}]
    names = (arguments.first, arguments.second)
    first_rows = find_rows(rows, arguments.first)
    second_rows = find_rows(rows, arguments.second)
    lines = _compare_rows(first_rows, second_rows, dataset)
    if not lines:
        raise PiiBenchError(_explain_no_lines(names, first_rows, second_rows))
    if arguments.json:
        echo_json([_record(names, line) for line in lines])
    else:
        echo(f"A: {names[0]}\nB: {names[1]}\n\n{_table(lines)}\n\n{_METHOD}")
        for line in lines:
            echo(f"\n{_samples(line, arguments.samples)}")
    return all(line.first.complete and line.second.complete for line in lines)


def _compare_rows(first_rows: _Rows, second_rows: _Rows, dataset: str) -> list[_Line]:
    """Compare the rows of each dataset and task that both have, in the leaderboard's order."""
    tasks = list(Task)
    keys = [key for key in first_rows.keys() & second_rows.keys() if dataset in {ALL, key[0]}]
    lines = []
    for key in sorted(keys, key=lambda key: (key[0], tasks.index(key[1]))):
        first, second = first_rows[key], second_rows[key]
        shared = first.by_sample.keys() & second.by_sample.keys()
        figure = next((name for name in _FIGURES if name in shared), None)
        if first is second or figure is None:
            continue
        comparison = compare(first.by_sample[figure], second.by_sample[figure])
        if comparison is not None:
            lines.append(_Line(first, second, figure, comparison, comparison.p))
    corrected = holm([line.p for line in lines])
    return [replace(line, p=p) for line, p in zip(lines, corrected, strict=True)]


def _explain_no_lines(names: tuple[str, str], first_rows: _Rows, second_rows: _Rows) -> str:
    shared = first_rows.keys() & second_rows.keys()
    if shared and all(first_rows[key] is second_rows[key] for key in shared):
        return f"{names[0]!r} and {names[1]!r} are the same rows"
    parts = []
    for name, rows in zip(names, (first_rows, second_rows), strict=True):
        listed = ", ".join(f"{task} on {dataset}" for dataset, task in rows)
        parts.append(f"{name!r} has {listed}")
    return f"no sample in common: {'; '.join(parts)}"


def _table(lines: Sequence[_Line]) -> str:
    body = [
        [
            line.first.dataset,
            line.first.task,
            _FIGURES[line.figure],
            _samples_cell(line),
            with_interval(line.comparison.first.figure, line.comparison.first_interval),
            with_interval(line.comparison.second.figure, line.comparison.second_interval),
            with_interval(
                line.comparison.difference, line.comparison.difference_interval, sign="+"
            ),
            "< 0.001" if line.p < 0.001 else f"{line.p:.3f}",
            formatted(line.comparison.detectable, ".3f", "-"),
        ]
        for line in lines
    ]
    header = ["Dataset", "Task", "Figure", "Samples", "A", "B", "Difference", "p", "Detectable"]
    return markdown_table(header, body)


def _record(names: tuple[str, str], line: _Line) -> dict[str, Any]:
    """Return a line for JSON, with all digits; the keys of the systems start with `a` and `b`."""
    comparison = line.comparison
    return {
        "dataset": line.first.dataset,
        "task": line.first.task,
        "figure": line.figure,
        "samples": len(comparison.first.ids),
        "of": line.first.gold,
        "a_system": names[0],
        "a_source": line.first.source,
        "a_oracle": line.first.oracle,
        "a": comparison.first.figure,
        "a_interval": bounds(comparison.first_interval),
        "b_system": names[1],
        "b_source": line.second.source,
        "b_oracle": line.second.oracle,
        "b": comparison.second.figure,
        "b_interval": bounds(comparison.second_interval),
        "difference": comparison.difference,
        "difference_interval": bounds(comparison.difference_interval),
        "p": line.p,
        "detectable": comparison.detectable,
    }


def _samples_cell(line: _Line) -> str:
    """Return the number of compared samples, and each system's source and oracle mark."""
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
    samples = line.comparison.most_different(count)
    if not samples:
        return f"{title}: {tally}"
    body = [[sample_id, f"{a:.3f}", f"{b:.3f}", f"{a - b:+.3f}"] for sample_id, a, b in samples]
    header = ["Sample", "A", "B", "Difference"]
    table = markdown_table(header, body)
    return f"{title}: {tally}; where they differ most:\n\n{table}"
