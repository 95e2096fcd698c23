"""Rows as tables on standard output, and what was left out of a dataset on standard error."""

from __future__ import annotations

import sys
from itertools import groupby
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pii_bench.datasets.catalog import Dataset
    from pii_bench.leaderboard.rows import Row


def print_rows(rows: Sequence[Row]) -> None:
    """One table per dataset and task, and the signature of each row that has one."""
    from pii_bench.leaderboard.render import to_table

    for (dataset, task), group in groupby(rows, key=lambda row: (row.dataset, row.task)):
        members = list(group)
        print(f"\n{dataset}: {task}\n\n{to_table(members)}")
    if rows:
        print()
    for row in rows:
        if row.signature:
            print(row.signature)


def print_faults(dataset: Dataset) -> None:
    """The annotations of a dataset that could not be used, where there are any."""
    if dataset.faults:
        count = len(dataset.faults)
        print(f"{dataset.source}: annotation faults left out: {count}", file=sys.stderr)
        for fault in dataset.faults:
            print(f"  {fault}", file=sys.stderr)
