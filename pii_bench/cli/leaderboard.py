"""`pii-bench leaderboard`, and rows of the leaderboard as commands print them."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Final

from pii_bench.cli.options import add_json, add_results, positive
from pii_bench.cli.terminal import say, say_json, tell
from pii_bench.ranking.external import published_rows
from pii_bench.ranking.render import record_of, to_table
from pii_bench.ranking.stored import collect, update

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from pii_bench.datasets.catalog import Dataset
    from pii_bench.ranking.rows import Row


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
        _say_left_out(collection.left_out)
        if arguments.json:
            say_json(paper_table_records(table, collection.rows, published_rows()))
        else:
            say(paper_table(table, collection.rows, published_rows()), end="")
        return not collection.left_out
    rows, complete = update_leaderboard(results, report=tell if arguments.json else say)
    if arguments.json:
        print_json(rows)
        return complete
    ours = sum(bool(row.signature) for row in rows)
    say(f"{ours} rows of ours, {len(rows) - ours} published")
    return complete


def update_leaderboard(
    results: Path, loaded: Iterable[Dataset] = (), *, report: Callable[[str], None] = say
) -> tuple[list[Row], bool]:
    """Write the leaderboard, say where it is, and use datasets that are loaded already.

    Returns:
        Its rows, and whether every run found its dataset.

    Raises:
        InputFileError: a stored run is broken.
        ResultsError: it cannot be written, or another run writes it for minutes.
    """
    board = update(results, loaded)
    _say_left_out(board.left_out)
    first, *others = board.files
    report(f"leaderboard: {first} (also {', '.join(path.suffix for path in others)})")
    return list(board.rows), not board.left_out


def print_rows(rows: Sequence[Row]) -> None:
    """One table per dataset and task, and the signature of each row that has one."""
    for (dataset, task), group in groupby(rows, key=lambda row: (row.dataset, row.task)):
        members = list(group)
        say(f"\n{dataset}: {task}\n\n{to_table(members)}")
    if rows:
        say()
    for row in rows:
        if row.signature:
            say(row.signature)


def print_json(rows: Iterable[Row]) -> None:
    """Rows as a JSON array, each with the columns of the leaderboard that it has."""
    say_json([record_of(row) for row in rows])


def _say_left_out(reasons: Iterable[str]) -> None:
    for reason in reasons:
        tell(f"left out: {reason}")
