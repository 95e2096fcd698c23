"""Where a row's figures come from."""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol


class Source(StrEnum):
    """Where a row's figures come from."""

    RUN = "run"
    REFERENCE = "reference"
    SUBMITTED = "submitted"
    PUBLISHED = "published"


class Marked(Protocol):
    """A row of any table that says where its figures come from."""

    @property
    def source(self) -> Source:
        """Where they come from."""
        ...

    @property
    def oracle(self) -> bool:
        """Whether the system is told gold."""
        ...

    @property
    def complete(self) -> bool:
        """Whether every gold sample is scored."""
        ...


def source_marks(row: Marked) -> list[str]:
    """Its source, and what sets it apart: `oracle`, `incomplete`."""
    marks = [str(row.source)]
    if row.oracle:
        marks.append("oracle")
    if row.source is not Source.PUBLISHED and not row.complete:
        marks.append("incomplete")
    return marks
