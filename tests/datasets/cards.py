"""Builder of dataset cards for tests."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from pii_bench.datasets.catalog import DatasetCard

_CARD: Final = DatasetCard(
    name="toy",
    version="1.2.3",
    released="2026-11-20",
    licence="CC-BY-4.0",
    benchmark=True,
    summary="A set.",
    construction="Made by hand.",
    known_limits=("Small.", "Not real."),
    pins={},
)


def make_card(**changes: Any) -> DatasetCard:
    """Return a card without pins."""
    return replace(_CARD, **changes)
