"""`pii-bench leaderboard`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pii_bench.cli.options import add_json, add_results, positive
from pii_bench.cli.terminal import (
    echo,
    echo_json,
    echo_rows,
    log,
    log_left_out,
    update_leaderboard,
)
from pii_bench.ranking.external import published_rows
from pii_bench.ranking.stored import collect

if TYPE_CHECKING:
    import argparse
    from pathlib import Path


DESCRIPTION: Final = "Write leaderboard.csv and leaderboard.md from the results."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument(
        "--table",
        type=positive,
        metavar="N",
        help="print ours in the layout of table N of the paper, with the differences",
    )
    add_json(parser)
    add_results(parser, stored=True)


def run(arguments: argparse.Namespace) -> bool:
    """Write the leaderboard of a results folder and say where it is, or print one table.

    Returns:
        Whether every stored run could be scored.

    Raises:
        UnknownNameError: no such table, or none that runs could fill.
    """
    results: Path = arguments.results
    table: int | None = arguments.table
    if table is not None:
        from pii_bench.ranking.paper_tables import paper_table, paper_table_records

        collection = collect(results)
        log_left_out(collection.left_out)
        if arguments.json:
            echo_json(paper_table_records(table, collection.rows, published_rows()))
        else:
            echo(paper_table(table, collection.rows, published_rows()), end="")
        return not collection.left_out
    rows, complete = update_leaderboard(results, report=log if arguments.json else echo)
    if arguments.json:
        echo_rows(rows, as_json=True)
        return complete
    ours = sum(bool(row.signature) for row in rows)
    echo(f"{ours} rows of ours, {len(rows) - ours} published")
    return complete
