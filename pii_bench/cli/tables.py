"""Rows as tables on standard output, and what was left out of a dataset on standard error."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from pii_bench.cli.terminal import say, say_json, tell
from pii_bench.runs.jobs import missing

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pii_bench.datasets.catalog import Dataset, DatasetStream
    from pii_bench.ranking.rows import Row
    from pii_bench.runs.jobs import Job


def print_rows(rows: Sequence[Row]) -> None:
    """One table per dataset and task, and the signature of each row that has one."""
    from pii_bench.ranking.render import to_table

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
    from pii_bench.ranking.render import record_of

    say_json([record_of(row) for row in rows])


def print_faults(dataset: Dataset | DatasetStream) -> None:
    """The annotations of a dataset that could not be used, where there are any."""
    if dataset.faults:
        count = len(dataset.faults)
        tell(f"{dataset.source}: annotation faults left out: {count}")
        for fault in dataset.faults:
            tell(f"  {fault}")


def print_missing(jobs: Sequence[Job]) -> bool:
    """Say what has no answer yet; whether nothing is missing."""
    lines = missing(jobs)
    for line in lines:
        tell(line)
    return not lines
