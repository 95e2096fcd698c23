"""`pii-bench analyse`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pii_bench.analysis.figures import draw_figures
from pii_bench.analysis.means import HARDER
from pii_bench.analysis.results import FOLDER, analyse, records, write_csvs
from pii_bench.analysis.runs import BASE, read_evaluated
from pii_bench.cli.options import add_json, add_results
from pii_bench.cli.terminal import echo, echo_json, log, log_left_out
from pii_bench.errors import MissingExtraError
from pii_bench.escaping import markdown_table
from pii_bench.ranking.external import published_rows
from pii_bench.ranking.rows import Source

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from pii_bench.analysis.agreement import Agreement
    from pii_bench.analysis.means import Drop, OfReason
    from pii_bench.analysis.results import Analysis
    from pii_bench.analysis.robustness import Robustness
    from pii_bench.analysis.runs import RunName


DESCRIPTION: Final = (
    "Analyse stored runs as the paper does: F1 by size, recall by type and category, drops on "
    "hard and distract, figures by reason of difficulty, versions of samples against their "
    "originals, agreement of datasets. Writes CSV files and figures into DIR/analysis."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    add_json(parser)
    add_results(parser, stored=True)


def run(arguments: argparse.Namespace) -> bool:
    """Write tables and figures of a results folder and print how far systems drop.

    Without matplotlib there are no figures, and it says what installs it.

    Returns:
        Whether every run found its dataset.

    Raises:
        InputFileError: a manifest or a line of responses is broken.
        ResultsError: a file cannot be written.
    """
    evaluated = read_evaluated(arguments.results)
    log_left_out(evaluated.left_out)
    analysis = analyse(evaluated.runs, published_rows())
    if arguments.json:
        echo_json(records(analysis))
    else:
        _print_tables(analysis)
    report = log if arguments.json else echo
    folder = arguments.results / FOLDER
    tables = write_csvs(analysis, arguments.results)
    report(f"analysis: {len(tables)} tables in {folder}")
    try:
        figures = draw_figures(analysis, folder)
    except MissingExtraError as error:
        log(f"no figures: {error}")
    else:
        report(f"analysis: {len(figures)} files of figures in {folder}")
    return not evaluated.left_out


def _print_tables(analysis: Analysis) -> None:
    ours = [drop for drop in analysis.drops if drop.run.source is not Source.PUBLISHED]
    if ours:
        echo(_table(ours) + "\n")
    else:
        echo("no run of ours is complete on single, multi and a harder set: no drops")
    if analysis.reasons:
        echo("by the reason why a sample is difficult:\n")
        echo(_reasons(analysis.reasons) + "\n")
    if analysis.robustness:
        echo("versions of samples against their originals:\n")
        echo(_versions(analysis.robustness) + "\n")
    if analysis.transfers:
        echo("ranking of systems next to that of other datasets:\n")
        echo(_transfers(analysis.transfers) + "\n")


def _table(drops: Sequence[Drop]) -> str:
    """One line per system, task and figure: its mean, and in brackets the difference."""
    lines: dict[tuple[str, ...], dict[str, Drop]] = {}
    for each in drops:
        run = each.run
        line = (run.model, run.strategy, str(run.task), each.metric, str(run.source))
        lines.setdefault(line, {})[run.dataset] = each
    cells = [
        [*line, f"{next(iter(sets.values())).base:.3f}", *(_cell(sets.get(h)) for h in HARDER)]
        for line, sets in sorted(lines.items())
    ]
    header = ["Model", "Strategy", "Task", "Figure", "Source", "+".join(BASE), *HARDER]
    return markdown_table(header, cells)


def _reasons(found: Sequence[OfReason]) -> str:
    """One line per system, task and figure, a column for each reason."""
    lines: dict[tuple[str, ...], dict[str, OfReason]] = {}
    for each in found:
        run = each.run
        line = (run.model, run.strategy, run.dataset, str(run.task), each.metric, str(run.source))
        lines.setdefault(line, {})[each.reason] = each
    reasons = sorted({each.reason for each in found})
    cells = [
        [*line, *(f"{own[r].value:.3f}" if r in own else "" for r in reasons)]
        for line, own in sorted(lines.items())
    ]
    header = ["Model", "Strategy", "Dataset", "Task", "Figure", "Source", *reasons]
    return markdown_table(header, cells)


def _versions(found: Sequence[Robustness]) -> str:
    """One line per system, task and kind, of the headline alone; intervals in brackets."""
    headline: dict[RunName, str] = {}
    for each in found:
        headline.setdefault(each.run, each.metric)
    cells = [
        [
            *(run.model, run.strategy, run.dataset, str(run.task), each.metric, each.kind),
            *(str(each.samples), f"{each.original:.3f}"),
            _with_ends(f"{each.drop:+.3f}", each.drop_low, each.drop_high),
            _with_ends(f"{each.consistency:.2f}", each.consistency_low, each.consistency_high),
        ]
        for each in found
        for run in [each.run]
        if headline[run] == each.metric
    ]
    header = ["Model", "Strategy", "Dataset", "Task", "Figure", "Kind", "Samples"]
    return markdown_table([*header, "Original", "Drop", "Same answer"], cells)


def _with_ends(value: str, low: float | None, high: float | None) -> str:
    return value if low is None or high is None else f"{value} ({low:.2f} to {high:.2f})"


def _transfers(found: Sequence[Agreement]) -> str:
    """Spearman's rho of each of our sets and each dataset of others."""
    cells = [
        [
            *(each.dataset_a, each.dataset_b, str(each.task), each.metric, str(each.systems)),
            "-" if each.rho is None else f"{each.rho:+.2f}",
        ]
        for each in found
    ]
    header = ["Ours", "Other", "Task", "Figure", "Systems", "rho"]
    return markdown_table(header, cells)


def _cell(drop: Drop | None) -> str:
    return f"{drop.value:.3f} ({-drop.drop:+z.3f})" if drop else ""
