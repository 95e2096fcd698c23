"""Systems under test: each answers samples, whatever it is made of."""

from __future__ import annotations

from typing import Final

DEFAULT_SYSTEM: Final = "encoder"
"""What runs where no other system is named."""

ENCODER: Final = "encoder"

BALANCED: Final = "balanced"
KEEP: Final = ("least", "less", BALANCED, "more", "most")
"""How much the encoder leaves readable; `systems.encoder.measure` fits a threshold for each."""
