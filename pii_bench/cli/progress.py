"""How a run shows its progress: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final, Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)

if TYPE_CHECKING:
    from types import TracebackType

    from rich.progress import TaskID

    from pii_bench.calls.budget import Ledger

_SECONDS_BETWEEN_LINES: Final = 10.0


class RunProgress:
    """Shows done, failed, rate and time left of one run after another (`Observer`).

    Args:
        console: where to; progress goes to standard error, results to standard output.
    """

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True)
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[failed]} failed"),
            TextColumn("{task.fields[rate]}/s"),
            TextColumn("{task.fields[spent]}"),
            TimeRemainingColumn(),
            console=self._console,
            disable=not self._console.is_terminal,
        )
        self._label = ""
        self._tasks: dict[str, TaskID] = {}
        self._ledger: Ledger | None = None
        self._task = self._bar.add_task(
            "", total=None, visible=False, failed=0, rate="0.0", spent=""
        )
        self._total = self._before = self._advanced = self._failed = 0
        self._start = self._last_line = 0.0

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()

    def label(self, text: str, ledger: Ledger | None = None) -> None:
        """Name the run that starts next, and who keeps account of its calls."""
        self._label, self._ledger = text, ledger

    def started(self, done: int, total: int) -> None:
        """A run begins, or goes on under its label; `done` samples of `total` have answers."""
        self._total, self._before, self._advanced, self._failed = total, done, 0, 0
        self._start = self._last_line = time.monotonic()
        fields: dict[str, Any] = {"failed": 0, "rate": "0.0", "spent": self._spent()}
        if (task := self._tasks.get(self._label)) is not None:
            self._task = task
            self._bar.reset(task, total=total, completed=done, **fields)
            return
        self._task = self._bar.add_task(self._label, total=total, completed=done, **fields)
        self._tasks[self._label] = self._task
        if done:
            self._print(f"{done} of {total} answered before")
        if not self._console.is_terminal and done < total:
            self._print(f"asking about {total - done}")

    def advanced(self, *, failed: bool) -> None:
        """One more sample was answered, or its call failed."""
        self._advanced += 1
        self._failed += failed
        seconds = time.monotonic() - self._start
        rate = self._advanced / seconds if seconds else 0.0
        self._bar.update(
            self._task, advance=1, failed=self._failed, rate=f"{rate:.1f}", spent=self._spent()
        )
        if not self._console.is_terminal:
            self._line(rate)

    def waiting(self, *, finished: int, total: int) -> None:
        """The provider has finished so many requests of the batches that still run."""
        self._print(f"batches: {finished} of {total or '?'} finished")

    def _spent(self) -> str:
        spent = self._ledger.spent_usd if self._ledger else None
        return "" if spent is None else f"{spent:.4f} USD"

    def _line(self, rate: float) -> None:
        done = self._before + self._advanced
        now = time.monotonic()
        if done < self._total and now - self._last_line < _SECONDS_BETWEEN_LINES:
            return
        self._last_line = now
        left = (self._total - done) / rate if rate else 0.0
        spent = f", {self._spent()}" if self._spent() else ""
        self._print(
            f"{done} of {self._total} done, {self._failed} failed, {rate:.1f}/s, "
            f"{left:.0f} s left{spent}"
        )

    def _print(self, what: str) -> None:
        # One line, however long, and no brackets of a name read as markup.
        self._console.print(f"{self._label}: {what}", soft_wrap=True, markup=False)
