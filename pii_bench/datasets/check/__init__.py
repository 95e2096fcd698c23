"""The checker of dataset files: whether a file, ours or foreign, holds what the format promises.

It works from what is in the file and shares no code with `pii_bench.construction`, so
that a fault of the generator is not repeated here.
"""

from __future__ import annotations

from pii_bench.datasets.check.run import Report, check_files, check_samples, sample_problems
from pii_bench.datasets.check.sets import CANARY
from pii_bench.datasets.check.text import Problem

__all__ = [
    "CANARY",
    "Problem",
    "Report",
    "check_files",
    "check_samples",
    "sample_problems",
]
