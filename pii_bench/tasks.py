"""The three tasks (paper, Section 3), rewriting, and what can become of a sample under a task."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Task(StrEnum):
    """What is asked of a system.

    `masking` is composed of detection and query-related; `rewrite` is a text that is written anew
    without what the query does not need.
    """

    DETECTION = "detection"
    QUERY_RELATED = "query-related"
    MASKING = "masking"
    REWRITE = "rewrite"


ALL_TASKS: Final = "all"
TASK_CHOICES: Final = (ALL_TASKS, *map(str, Task))
"""What `--task` takes."""


class Status(StrEnum):
    """The one outcome of a sample under one task."""

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
        """Whether there is a prediction to compare with gold."""
        return self in {Status.OK, Status.REPAIRED}

    @property
    def scored(self) -> bool:
        """Whether the sample counts in a mean: an answer, or a failure that the model caused."""
        return self not in {Status.INFRA_ERROR, Status.SKIPPED_BUDGET}
