"""Quality of single and multi, measured: how alike texts are, and how far shortcuts get."""

from __future__ import annotations

from pii_bench.construction.quality.measure import Measure, Unit
from pii_bench.construction.quality.report import measure_quality, render

__all__ = ["Measure", "Unit", "measure_quality", "render"]
