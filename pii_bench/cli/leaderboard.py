"""`pii-bench leaderboard`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from pii_bench.leaderboard.collect import collect
from pii_bench.leaderboard.published import published_rows
from pii_bench.leaderboard.render import write_leaderboard
from pii_bench.leaderboard.rows import rank
from pii_bench.runner.lock import locked

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pii_bench.datasets.catalog import Dataset
    from pii_bench.leaderboard.rows import Row

_LONGEST_WAIT: Final = 300.0


def build_leaderboard(results: Path) -> bool:
    """Write the leaderboard of a results folder and say where it is."""
    rows, complete = update_leaderboard(results)
    ours = sum(bool(row.signature) for row in rows)
    print(f"{ours} rows of ours, {len(rows) - ours} published")
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
        csv, markdown = write_leaderboard(rows, results)
    for reason in collection.left_out:
        print(f"left out: {reason}", file=sys.stderr)
    print(f"leaderboard: {csv} and {markdown}")
    return rows, not collection.left_out
