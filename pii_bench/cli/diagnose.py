"""`pii-bench diagnose`."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from pii_bench.analysis.diagnosis.errors import ErrorClass
from pii_bench.analysis.diagnosis.exposure import find_scores
from pii_bench.analysis.diagnosis.tables import (
    ANSWERED,
    CLOSED,
    OPEN,
    curve_table,
    error_table,
    leak_table,
    query_runs,
    twin_table,
)
from pii_bench.cli.options import add_options, stored_results
from pii_bench.cli.terminal import echo, echo_json, log_left_out, report
from pii_bench.errors import PiiBenchError
from pii_bench.escaping import csv_text, markdown_table
from pii_bench.files import write_whole
from pii_bench.ranking.stored import read_runs

if TYPE_CHECKING:
    import argparse
    from collections.abc import Hashable, Iterator, Sequence

    import pandas as pd

_ERRORS: Final = """\
Errors: texts wrongly selected or not (query-related), wrongly readable or hidden in the masked text
(masking), by cause; `pii_bench/analysis/diagnosis/errors.py` defines the classes. A detected text
that is not PII counts as a wrong type. `-`: the class cannot occur without detection answers."""

_LEAK: Final = """\
Leak: share of the PII that the query does not need which is still readable, weighted by tier (1 to
3, `pii_bench/taxonomy.py`). Over: share of the needed PII that is hidden. Text: share of the
characters outside PII that are hidden. Open, closed: the same if failed samples pass unmasked, or
are hidden completely. Repeated: unneeded PII that occurs more than once, and how much of it is
masked at some of its places only, or at none."""

_TWINS: Final = """\
Twins: samples with the same description and different queries. Shown: pairs of answers that react
as they should, among the pairs that neither failed nor are undefined. Right: both answers exactly
right, among those that did not fail. `pii_bench/analysis/diagnosis/twins.py` defines the
reactions."""

_SYSTEM: Final = ("Model", "Strategy", "Source")
_RATES: Final = ("leak", "over_masking", "text_over_masking")
_REACTIONS: Final = (
    *("reaction", "against", "pairs", "failed", "undefined", "done", "rate"),
    *("both_right", "right_rate"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command and its arguments."""
    parser.description = (
        "Classify the errors of stored runs, compare leak with over-masking, and show how systems "
        "react to twins. Writes CSV files into DIR/diagnosis. Runs relevance systems with a "
        "threshold again, for leak-curve.csv."
    )
    add_options(parser, "--json")
    add_options(parser, "--results", type=stored_results)


def run(arguments: argparse.Namespace) -> bool:
    """Print the errors, leaks and reactions of runs, and write them; True if none is left out."""
    stored = read_runs(arguments.results)
    runs = query_runs(stored.runs)
    scored, without_curve = find_scores(runs)
    left_out = [*stored.left_out, *without_curve]
    log_left_out(left_out)
    if not runs:
        raise PiiBenchError(f"{arguments.results}: no answers to queries are stored there")
    tables = {
        "errors": error_table(runs),
        "leak": leak_table(runs),
        "leak-curve": curve_table(scored),
        "twins": twin_table(runs),
    }
    folder = arguments.results / "diagnosis"
    records = []
    for name, table in tables.items():
        known = table.astype(object).where(table.notna(), None)
        text = csv_text(list(table.columns), known.itertuples(index=False), figure=".6g")
        write_whole(folder / f"{name}.csv", text)
        # JSON has no infinity, such as the threshold that keeps nothing.
        finite = known.where(~known.isin([math.inf, -math.inf]), None)
        records += [{"table": name, **record} for record in finite.to_dict("records")]
    if arguments.json:
        echo_json(records)
    else:
        _print_errors(tables["errors"])
        _print_leak(tables["leak"])
        _print_twins(tables["twins"])
    paths = ", ".join(str(folder / f"{name}.csv") for name in tables)
    report(f"\ntables: {paths}", as_json=arguments.json)
    return not left_out


def _print_errors(table: pd.DataFrame) -> None:
    echo(_ERRORS)
    for (dataset, task), part in table.groupby(["dataset", "task"], sort=False):
        body = []
        for system, lines in _by_run(part.dropna(subset="errors")):
            counts = Counter[str]()
            for line in lines:
                counts[line["class"]] += line["errors"]
            scored = f"{lines[0]['scored']}/{lines[0]['gold']}"
            possible = {line["class"] for line in lines}
            cells = [counts[error] if error in possible else None for error in ErrorClass]
            body.append([*system, scored, *cells, counts.total()])
        echo(f"\n{dataset}: {task}\n")
        _print_table([*_SYSTEM, "Scored", *ErrorClass, "all"], body)


def _print_leak(table: pd.DataFrame) -> None:
    if table.empty:
        return
    echo(f"\n{_LEAK}")
    header = [*_SYSTEM, "Answered", "Failed"]
    for title in ("Leak", "Over", "Text"):
        header += [title, OPEN, CLOSED]
    header += ["Repeated", "some", "none"]
    for dataset, part in table.groupby("dataset", sort=False):
        body = []
        for system, lines in _by_run(part):
            by_policy = {line["on_failure"]: line for line in lines}
            line = by_policy[ANSWERED]
            cells = [*system, f"{line['answered']}/{line['gold']}", line["failed"]]
            for rate in _RATES:
                cells += [by_policy[policy][rate] for policy in (ANSWERED, OPEN, CLOSED)]
            cells += [line["repeated"], line["repeated_in_part"], line["repeated_open"]]
            body.append(cells)
        echo(f"\n{dataset}\n")
        _print_table(header, body)


def _print_twins(table: pd.DataFrame) -> None:
    if table.empty:
        return
    echo(f"\n{_TWINS}")
    header = [*_SYSTEM, "Reaction", "Against", "Pairs", "Failed", "Undefined", "Shown", "Rate"]
    header += ["Right", "Rate"]
    for dataset, part in table.groupby("dataset", sort=False):
        body = [
            [*system, *(line[name] for name in _REACTIONS)]
            for system, lines in _by_run(part)
            for line in lines
        ]
        echo(f"\n{dataset}\n")
        _print_table(header, body)


def _by_run(table: pd.DataFrame) -> Iterator[tuple[list[str], list[dict[Hashable, Any]]]]:
    """Yield the model, strategy and source of each run of a dataset, with its rows."""
    for _, part in table.groupby(["source", "model", "strategy"], sort=False):
        lines = part.to_dict("records")
        first = lines[0]
        source = f"{first['source']}, oracle" if first["oracle"] else str(first["source"])
        yield [first["model"], first["strategy"], source], lines


def _print_table(header: Sequence[str], body: Sequence[Sequence[object]]) -> None:
    echo(markdown_table(header, [[_cell(value) for value in line] for line in body]))


def _cell(value: object) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "-"
    return f"{value:.3f}" if isinstance(value, float) else str(value)
