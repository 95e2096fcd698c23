"""The three tasks of the paper (Section 3), rewriting, and the status of a sample in a task."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Task(StrEnum):
    """A task.

    `masking` combines detection and query-related; in `rewrite` a system rewrites the text without
    the PII that the query does not need.
    """

    DETECTION = "detection"
    QUERY_RELATED = "query-related"
    MASKING = "masking"
    REWRITE = "rewrite"


ALL_TASKS: Final = "all"
TASK_CHOICES: Final = (ALL_TASKS, *map(str, Task))
"""Allowed values of `--task`."""


class Status(StrEnum):
    """The outcome of one sample in one task."""

    OK = "ok"
    REPAIRED = "repaired"
    MALFORMED = "malformed"
    TRUNCATED = "truncated"
    EMPTY = "empty"
    REFUSED = "refused"
    FILTERED = "filtered"
    INFRA_ERROR = "infra_error"
    SKIPPED_BUDGET = "skipped_budget"

    @property
    def answered(self) -> bool:
        """True if there is a prediction to compare with gold."""
        return self in {Status.OK, Status.REPAIRED}

    @property
    def scored(self) -> bool:
        """True if the sample counts in a mean: answered, or failed because of the model."""
        return self not in {Status.INFRA_ERROR, Status.SKIPPED_BUDGET}
