"""The three tasks (paper, Section 3)."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pii_bench.datasets.sample import Sample


class Task(StrEnum):
    """What is asked of a system. `masking` is composed of the other two."""

    DETECTION = "detection"
    QUERY_RELATED = "query-related"
    MASKING = "masking"


def applicable(task: Task, samples: Sequence[Sample]) -> list[Sample]:
    """The samples that a task applies to: all for detection, those with a query otherwise."""
    if task is Task.DETECTION:
        return list(samples)
    return [sample for sample in samples if sample.query is not None]
