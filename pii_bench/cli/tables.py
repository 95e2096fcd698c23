"""Rows as tables on standard output."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from pii_bench.leaderboard.render import to_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pii_bench.leaderboard.rows import Row


def print_rows(rows: Sequence[Row]) -> None:
    """One table per dataset and task, and the signature of each row that has one."""
    for (dataset, task), group in groupby(rows, key=lambda row: (row.dataset, row.task)):
        members = list(group)
        print(f"\n{dataset}: {task}\n\n{to_table(members)}")
    if rows:
        print()
    for row in rows:
        if row.signature:
            print(row.signature)
