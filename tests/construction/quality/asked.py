"""Questions in one line."""

from __future__ import annotations

from pii_bench.construction.quality.shortcuts import Choice, Question


def ask(query: str, *needed: str, **categories: str) -> Question:
    """A question about one subject; choices by text."""
    choices = tuple(Choice(text, category, 0) for text, category in categories.items())
    return Question(query, choices, frozenset(needed))
