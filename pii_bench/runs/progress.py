"""Progress events of runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pii_bench.models.budget import Ledger


class Progress:
    """Receives the progress events of several runs, one after another, and ignores them."""

    def label(self, text: str, ledger: Ledger | None = None) -> None:
        """Called before each run, with its name and the ledger of its calls."""

    def started(self, done: int, total: int) -> None:
        """Called at the start; `done` of `total` samples have a response already."""

    def advanced(self, *, failed: bool) -> None:
        """Called after each sample."""

    def waiting(self, *, finished: int, total: int) -> None:
        """Called while batches run, with the number of requests that the provider has finished."""

    def note(self, what: str) -> None:
        """Called with a message for the user."""
