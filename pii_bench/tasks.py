"""The three tasks (paper, Section 3), and rewriting."""

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
