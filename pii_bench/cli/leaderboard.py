"""`pii-bench leaderboard`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from pii_bench.leaderboard.collect import collect
from pii_bench.leaderboard.published import published_rows
from pii_bench.leaderboard.render import write_leaderboard
from pii_bench.leaderboard.rows import rank

if TYPE_CHECKING:
    from pathlib import Path

    from pii_bench.leaderboard.rows import Row


def build_leaderboard(results: Path) -> bool:
    """Write the leaderboard of a results folder and say where it is."""
    rows, complete = update_leaderboard(results)
    ours = sum(bool(row.signature) for row in rows)
    print(f"{ours} rows of ours, {len(rows) - ours} published")
    return complete


def update_leaderboard(results: Path) -> tuple[list[Row], bool]:
    """Write the leaderboard.

    Returns:
        Its rows, and whether every run found its dataset.
    """
    collection = collect(results)
    rows = rank([*collection.rows, *published_rows()])
    csv, markdown = write_leaderboard(rows, results)
    for reason in collection.left_out:
        print(f"left out: {reason}", file=sys.stderr)
    print(f"leaderboard: {csv} and {markdown}")
    return rows, not collection.left_out
