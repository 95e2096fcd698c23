"""What became of one sample: the statuses of the scorer's contract (spec, "Failures")."""

from __future__ import annotations

from enum import StrEnum


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
