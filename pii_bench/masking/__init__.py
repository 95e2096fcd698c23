"""Masking what a query does not need with tags, and restoring it."""

from __future__ import annotations

from pii_bench.masking.masked import Masked, MaskedSpan, absent_tags, inexact_tags, mask, unmask

__all__ = ["Masked", "MaskedSpan", "absent_tags", "inexact_tags", "mask", "unmask"]
