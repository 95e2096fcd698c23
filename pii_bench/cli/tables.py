"""Rows as tables on standard output, and what was left out of a dataset on standard error."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Final

from pii_bench.cli.terminal import say, say_json, tell
from pii_bench.runs.jobs import missing
from pii_bench.runs.store import read_lines
from pii_bench.systems.plug_in import PlugIn, fault_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pii_bench.datasets.catalog import Dataset, DatasetStream
    from pii_bench.ranking.rows import Row
    from pii_bench.runs.jobs import Job

_LISTED: Final = 5


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


def print_plug_in_faults(jobs: Sequence[Job]) -> None:
    """The samples on which a plug-in's code failed; such an answer counts as a wrong one."""
    for job in jobs:
        if not isinstance(job.system, PlugIn):
            continue
        asked = {sample.id for sample in job.samples}
        faults = [
            f"sample {record.id!r}: {fault}"
            for _, record in read_lines(job.files.responses, unreadable=[])
            if record.id in asked and (fault := fault_of(record.response))
        ]
        for fault in faults[:_LISTED]:
            tell(f"{job.label}, {fault}")
        if len(faults) > _LISTED:
            tell(f"{job.label}: and {len(faults) - _LISTED} more")


def print_missing(jobs: Sequence[Job]) -> bool:
    """Say what has no answer yet; whether nothing is missing."""
    lines = missing(jobs)
    for line in lines:
        tell(line)
    return not lines
