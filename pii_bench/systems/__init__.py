"""The systems under test: each turns a sample into a prediction."""

from __future__ import annotations

from typing import Final

DEFAULT_SYSTEM: Final = "encoder"
"""The system that runs when no model is named."""

ENCODER: Final = "encoder"

BALANCED: Final = "balanced"
KEEP: Final = ("least", "less", BALANCED, "more", "most")
"""How much text the encoder leaves readable; `encoder.measure` fits a threshold for each."""
