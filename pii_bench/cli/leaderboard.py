"""`pii-bench leaderboard`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pii_bench.cli.terminal import say, tell
from pii_bench.ranking.collect import collect
from pii_bench.ranking.published import published_rows
from pii_bench.ranking.render import write_leaderboard
from pii_bench.ranking.rows import rank
from pii_bench.runs.lock import locked

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pii_bench.datasets.catalog import Dataset
    from pii_bench.ranking.collect import Collection
    from pii_bench.ranking.rows import Row

_LONGEST_WAIT: Final = 300.0


def build_leaderboard(results: Path, table: int | None) -> bool:
    """Write the leaderboard of a results folder and say where it is, or print one table.

    Args:
        results: the folder.
        table: of the paper, whose layout is wanted; None for the leaderboard.

    Raises:
        UnknownNameError: no such table, or none that runs could fill.
    """
    if table is not None:
        from pii_bench.ranking.paper_tables import paper_table

        collection = collect(results)
        _say_left_out(collection)
        say(paper_table(table, collection.rows, published_rows()), end="")
        return not collection.left_out
    rows, complete = update_leaderboard(results)
    ours = sum(bool(row.signature) for row in rows)
    say(f"{ours} rows of ours, {len(rows) - ours} published")
    return complete


def update_leaderboard(results: Path, loaded: Iterable[Dataset] = ()) -> tuple[list[Row], bool]:
    """Write the leaderboard.

    Args:
        results: folder of the runs.
        loaded: datasets that need not be read again.

    Returns:
        Its rows, and whether every run found its dataset.

    Raises:
        InputFileError: a stored run is broken.
        ResultsError: it cannot be written, or another run writes it for minutes.
    """
    # Who collects last must write last: an older view would hide the rows of another run.
    with locked(results, wait=_LONGEST_WAIT):
        collection = collect(results, loaded)
        rows = rank([*collection.rows, *published_rows()])
        files = write_leaderboard(rows, results)
    _say_left_out(collection)
    first, *others = files
    say(f"leaderboard: {first} (also {', '.join(path.suffix for path in others)})")
    return rows, not collection.left_out


def _say_left_out(collection: Collection) -> None:
    for reason in collection.left_out:
        tell(f"left out: {reason}")
