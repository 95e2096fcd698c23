"""Masking a text for a query: what the query does not need becomes tags, and back."""

from __future__ import annotations

from pii_bench.masking.answers import Answers, MaskingError, ask, mask_for_query, masking_systems
from pii_bench.masking.masked import Masked, MaskedSpan, absent_tags, inexact_tags, mask, unmask

__all__ = [
    "Answers",
    "Masked",
    "MaskedSpan",
    "MaskingError",
    "absent_tags",
    "ask",
    "inexact_tags",
    "mask",
    "mask_for_query",
    "masking_systems",
    "unmask",
]
