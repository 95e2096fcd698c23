"""Where a row's figures come from."""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol


class Source(StrEnum):
    """Where a row's figures come from."""

    RUN = "run"
    REFERENCE = "reference"
    SUBMITTED = "submitted"
    READING = "reading"
    HUMAN = "human"
    PUBLISHED = "published"

    @property
    def is_system(self) -> bool:
        """Whether a system of ours or of somebody else answered, so that the row is ranked."""
        return self not in {Source.READING, Source.HUMAN, Source.PUBLISHED}


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
    if row.source.is_system and not row.complete:
        marks.append("incomplete")
    return marks
