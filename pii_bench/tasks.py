"""The three tasks (paper, Section 3)."""

from __future__ import annotations

from enum import StrEnum


class Task(StrEnum):
    """What is asked of a system. `masking` is composed of the other two."""

    DETECTION = "detection"
    QUERY_RELATED = "query-related"
    MASKING = "masking"
