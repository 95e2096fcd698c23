"""`pii-bench leaderboard`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pii_bench.cli.options import add_options, positive, stored_results
from pii_bench.cli.terminal import (
    echo,
    echo_json,
    echo_rows,
    log_left_out,
    update_leaderboard,
)
from pii_bench.ranking.external import human_rows, published_rows
from pii_bench.ranking.stored import collect

if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command and its arguments."""
    parser.description = "Write leaderboard.csv and leaderboard.md from the results."
    parser.add_argument(
        "--table",
        type=positive,
        metavar="N",
        help="print our scores in the layout of table N of the paper, with the differences",
    )
    add_options(parser, "--json")
    add_options(parser, "--results", type=stored_results)


def run(arguments: argparse.Namespace) -> bool:
    """Write the leaderboard, or print one table of the paper; True if no run was left out."""
    if arguments.table is not None:
        return _print_paper_table(arguments)
    rows, complete = update_leaderboard(arguments.results, as_json=arguments.json)
    if arguments.json:
        echo_rows(rows, as_json=True)
    else:
        ours = sum(bool(row.signature) for row in rows)
        echo(f"{ours} rows of ours, {len(rows) - ours} published")
    return complete


def _print_paper_table(arguments: argparse.Namespace) -> bool:
    from pii_bench.ranking.paper_tables import paper_table, paper_table_records

    collection = collect(arguments.results)
    people, broken = human_rows(arguments.results)
    rows, left_out = [*collection.rows, *people], [*collection.left_out, *broken]
    log_left_out(left_out)
    if arguments.json:
        echo_json(paper_table_records(arguments.table, rows, published_rows()))
    else:
        echo(paper_table(arguments.table, rows, published_rows()), end="")
    return not left_out
