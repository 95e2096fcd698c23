"""`pii-bench analyse`."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from pii_bench.analysis.figures import draw_figures
from pii_bench.analysis.means import HARDER
from pii_bench.analysis.results import FOLDER, analyse, records, write_csvs
from pii_bench.analysis.runs import BASE, read_evaluated
from pii_bench.cli.options import add_options, stored_results
from pii_bench.cli.terminal import echo, echo_json, formatted, log, log_left_out, report
from pii_bench.errors import MissingExtraError
from pii_bench.escaping import markdown_table
from pii_bench.ranking.external import published_rows
from pii_bench.ranking.rows import Source

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from pii_bench.analysis.agreement import Agreement
    from pii_bench.analysis.means import Drop, OfReason
    from pii_bench.analysis.results import Analysis
    from pii_bench.analysis.robustness import Robustness
    from pii_bench.analysis.runs import RunName


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command and its arguments."""
    parser.description = (
        "Analyse stored runs as the paper does: F1 by size, recall by type and category, drops on "
        "hard and distract, scores by reason of difficulty, perturbed samples against their "
        "originals, agreement of datasets. Writes CSV files and figures into DIR/analysis."
    )
    add_options(parser, "--json")
    add_options(parser, "--results", type=stored_results)


def run(arguments: argparse.Namespace) -> bool:
    """Write the tables and figures of a results folder, and print the main tables.

    Without matplotlib no figures are drawn, and a message says how to install it. Return True if
    no stored run was left out.
    """
    runs, left_out = read_evaluated(arguments.results)
    log_left_out(left_out)
    analysis = analyse(runs, published_rows())
    if arguments.json:
        echo_json(records(analysis))
    else:
        _print_tables(analysis)
    folder = arguments.results / FOLDER
    tables = write_csvs(analysis, arguments.results)
    report(f"analysis: {len(tables)} tables in {folder}", as_json=arguments.json)
    try:
        figures = draw_figures(analysis, folder)
    except MissingExtraError as error:
        log(f"no figures: {error}")
    else:
        report(f"analysis: {len(figures)} files of figures in {folder}", as_json=arguments.json)
    return not left_out


def _print_tables(analysis: Analysis) -> None:
    drops = [drop for drop in analysis.drops if drop.run.source is not Source.PUBLISHED]
    if drops:
        echo(_drop_table(drops) + "\n")
    else:
        echo("no run of ours is complete on single, multi and a harder set: no drops")
    if analysis.reasons:
        echo("by the reason why a sample is difficult:\n")
        echo(_reason_table(analysis.reasons) + "\n")
    if analysis.robustness:
        echo("perturbed samples against their originals:\n")
        echo(_robustness_table(analysis.robustness) + "\n")
    if analysis.transfers:
        echo("agreement with the ranking on other datasets:\n")
        echo(_transfer_table(analysis.transfers) + "\n")


def _drop_table(drops: Sequence[Drop]) -> str:
    """Return one line per system, task and metric, a column for each harder set."""
    lines: dict[tuple[str, ...], dict[str, str]] = defaultdict(dict)
    for drop in drops:
        run = drop.run
        system = (run.model, run.strategy, str(run.task), drop.metric, str(run.source))
        lines[*system, f"{drop.base:.3f}"][run.dataset] = f"{drop.value:.3f} ({-drop.drop:+z.3f})"
    header = ["Model", "Strategy", "Task", "Figure", "Source", "+".join(BASE), *HARDER]
    return markdown_table(header, _rows(lines, HARDER))


def _reason_table(means: Sequence[OfReason]) -> str:
    """Return one line per system, task and metric, a column for each reason."""
    lines: dict[tuple[str, ...], dict[str, str]] = defaultdict(dict)
    for mean in means:
        run = mean.run
        system = (run.model, run.strategy, run.dataset, str(run.task), mean.metric, str(run.source))
        lines[system][mean.reason] = f"{mean.value:.3f}"
    reasons = sorted({mean.reason for mean in means})
    header = ["Model", "Strategy", "Dataset", "Task", "Figure", "Source", *reasons]
    return markdown_table(header, _rows(lines, reasons))


def _rows(
    lines: Mapping[tuple[str, ...], Mapping[str, str]], columns: Sequence[str]
) -> list[list[str]]:
    """Return the sorted lines, with an empty cell where one lacks a column."""
    return [
        [*system, *(cells.get(column, "") for column in columns)]
        for system, cells in sorted(lines.items())
    ]


def _robustness_table(rows: Sequence[Robustness]) -> str:
    """Return one line per system, task and kind, for the first metric of each run."""
    headlines: dict[RunName, str] = {}
    body = []
    for row in rows:
        run = row.run
        if headlines.setdefault(run, row.metric) != row.metric:
            continue
        drop = _with_interval(f"{row.drop:+.3f}", row.drop_low, row.drop_high)
        same = _with_interval(f"{row.consistency:.2f}", row.consistency_low, row.consistency_high)
        body.append(
            [
                *(run.model, run.strategy, run.dataset, str(run.task), row.metric, row.kind),
                *(str(row.samples), f"{row.original:.3f}", drop, same),
            ]
        )
    header = ["Model", "Strategy", "Dataset", "Task", "Figure", "Kind", "Samples"]
    return markdown_table([*header, "Original", "Drop", "Same answer"], body)


def _with_interval(value: str, low: float | None, high: float | None) -> str:
    return value if low is None or high is None else f"{value} ({low:.2f} to {high:.2f})"


def _transfer_table(agreements: Sequence[Agreement]) -> str:
    """Return Spearman's rho of each of our sets and each dataset of others."""
    body = [
        [
            *(row.dataset_a, row.dataset_b, str(row.task), row.metric, str(row.systems)),
            formatted(row.rho, "+.2f", "-"),
        ]
        for row in agreements
    ]
    header = ["Ours", "Other", "Task", "Figure", "Systems", "rho"]
    return markdown_table(header, body)
