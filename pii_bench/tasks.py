"""The three tasks (paper, Section 3)."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Task(StrEnum):
    """What is asked of a system. `masking` is composed of the other two."""

    DETECTION = "detection"
    QUERY_RELATED = "query-related"
    MASKING = "masking"


ALL_TASKS: Final = "all"
TASK_CHOICES: Final = (ALL_TASKS, *map(str, Task))
"""What `--task` takes."""
