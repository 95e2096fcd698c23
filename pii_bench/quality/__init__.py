"""Quality of the sets, measured: how alike their texts are, and how far shortcuts get in them."""

from __future__ import annotations

from pii_bench.quality.measure import Measure, Unit
from pii_bench.quality.report import COMPARED, measure_quality, render, replace_block

__all__ = ["COMPARED", "Measure", "Unit", "measure_quality", "render", "replace_block"]
