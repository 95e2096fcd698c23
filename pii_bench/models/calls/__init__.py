"""Calls to models: retried, paced, and paid for under a cap."""

from __future__ import annotations

from typing import Final

MOST_CALLS: Final = 1000
"""At a time."""
