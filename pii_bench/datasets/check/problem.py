"""What the checker finds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """A rule that a sample breaks.

    Attributes:
        sample_id: of the sample; "line N" where a line holds none that can be read.
        rule: name of the rule, lower case with hyphens.
        reason: what breaks it. It may quote the sample: who checks a file has it.
    """

    sample_id: str
    rule: str
    reason: str
