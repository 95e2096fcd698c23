"""What a command says: results on standard output, all else and progress on standard error."""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import contextmanager
from itertools import groupby
from typing import TYPE_CHECKING, Final, Self, TypeVar

from pii_bench import escaping
from pii_bench.errors import PiiBenchError
from pii_bench.escaping import terminal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from rich.console import Console
    from rich.progress import TaskID

    from pii_bench.datasets.catalog import Dataset, DatasetStream
    from pii_bench.models.budget import Ledger
    from pii_bench.ranking.rows import Row


class OutputError(PiiBenchError):
    """Standard output takes no more, as on a full disk."""


def say(text: str = "", *, end: str = "\n") -> None:
    """Print a result.

    Raises:
        OutputError: it cannot be written.
    """
    with _writing():
        print(terminal(text), end=end)


def say_json(rows: Sequence[object] | Mapping[str, object]) -> None:
    """Print rows as a JSON array, or one object, in ASCII.

    What JSON has no kind for, such as a day, is printed as text.

    Raises:
        OutputError: it cannot be written.
    """
    # The only character of ASCII that JSON may hold and `say` would show another way.
    say(json.dumps(rows, indent=2, default=str).replace("\x7f", "\\u007f"))


def say_exactly(text: str) -> None:
    """Print a text of the user's own, byte by byte as it came.

    Raises:
        OutputError: it cannot be written.
    """
    with _writing():
        sys.stdout.flush()
        sys.stdout.buffer.write(text.encode("utf-8", "surrogatepass"))
        sys.stdout.flush()


def tell(text: str) -> None:
    """Print something about the run, at once."""
    print(terminal(text), file=sys.stderr, flush=True)


def tell_left_out(reasons: Iterable[str]) -> None:
    """Say which stored runs are in no table, and why."""
    for reason in reasons:
        tell(f"left out: {reason}")


def finish() -> None:
    """Write out what is printed and waits.

    Raises:
        OutputError: it cannot be written.
    """
    with _writing():
        sys.stdout.flush()


@contextmanager
def _writing() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        # What waits in the buffer would fail once more when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        what = error.strerror or str(error)
        raise OutputError(f"standard output cannot be written: {what}") from error


T = TypeVar("T")

BIG: Final = 100 * 10**6
"""Bytes from which an export says its size before it is written."""

_SECONDS_BETWEEN_LINES: Final = 10.0


def tell_faults(dataset: Dataset | DatasetStream) -> None:
    """Say which annotations of a dataset could not be used, where there are any."""
    if dataset.faults:
        count = len(dataset.faults)
        tell(f"{dataset.source}: annotation faults left out: {count}")
        for fault in dataset.faults:
            tell(f"  {fault}")


def tell_big(size: int, out: Path, *, compressed: bool) -> None:
    """Say what an export will write where that is much; `size` is before compression."""
    if size >= BIG:
        hint = "before they are compressed" if compressed else "--gzip compresses them"
        tell(f"about {size / 1e6:,.0f} MB of samples for {out}: {hint}")


def update_leaderboard(
    results: Path, loaded: Iterable[Dataset] = (), *, report: Callable[[str], None] = say
) -> tuple[list[Row], bool]:
    """Write the leaderboard, say where it is, and use datasets that are loaded already.

    Returns:
        Its rows, and whether every run found its dataset.

    Raises:
        InputFileError: a stored run is broken.
        ResultsError: it cannot be written, or another run writes it for minutes.
    """
    from pii_bench.ranking.stored import update

    board = update(results, loaded)
    tell_left_out(board.left_out)
    first, *others = board.files
    report(f"leaderboard: {first} (also {', '.join(path.suffix for path in others)})")
    return list(board.rows), not board.left_out


def say_rows(rows: Sequence[Row], *, as_json: bool) -> None:
    """One table per dataset and task, and the signature of each row that has one; or JSON."""
    from pii_bench.ranking.render import record_of, to_table

    if as_json:
        say_json([record_of(row) for row in rows])
        return
    for (dataset, task), group in groupby(rows, key=lambda row: (row.dataset, row.task)):
        say(f"\n{dataset}: {task}\n\n{to_table(list(group))}")
    if rows:
        say()
    for row in rows:
        if row.signature:
            say(row.signature)


class RunProgress:
    """Shows done, failed, rate and time left of one run after another (`Observer`).

    Args:
        console: where to; None for standard error, because results go to standard output.
    """

    def __init__(self, console: Console | None = None) -> None:
        if console is None and sys.stderr.isatty():
            from rich.console import Console

            console = Console(stderr=True)
        self._console = console
        self._bars = _Bars(console) if console is not None and console.is_terminal else None
        self._label = ""
        self._labels: set[str] = set()
        self._ledger: Ledger | None = None
        self._total = self._before = self._advanced = self._failed = 0
        self._start = self._last_line = 0.0

    def __enter__(self) -> Self:
        if self._bars:
            self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bars:
            self._bars.stop()

    def label(self, text: str, ledger: Ledger | None = None) -> None:
        """Name the run that starts next; the ledger counts what its calls cost."""
        self._label, self._ledger = text, ledger

    def started(self, done: int, total: int) -> None:
        """A run begins, or goes on under its label; `done` samples of `total` have answers."""
        self._total, self._before, self._advanced, self._failed = total, done, 0, 0
        self._start = self._last_line = time.monotonic()
        if self._bars:
            self._bars.begin(self._label, done, total, spent=self._spent())
        if self._label in self._labels:
            return
        self._labels.add(self._label)
        if done:
            self._print(f"{done} of {total} answered before")
        if not self._bars and done < total:
            self._print(f"asking about {total - done}")

    def advanced(self, *, failed: bool) -> None:
        """One more sample was answered, or its call failed."""
        self._advanced += 1
        self._failed += failed
        seconds = time.monotonic() - self._start
        rate = self._advanced / seconds if seconds else 0.0
        if self._bars:
            self._bars.advance(failed=self._failed, rate=rate, spent=self._spent())
        else:
            self._line(rate)

    def waiting(self, *, finished: int, total: int) -> None:
        """The provider has finished so many requests of the batches that still run."""
        self._print(f"batches: {finished} of {total or '?'} finished")

    def note(self, what: str) -> None:
        """Say something of the run under its label."""
        self._print(what)

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
        line = f"{self._label}: {what}"
        if self._console is None:
            tell(line)
        else:
            # One line, however long, and nothing of a name read as markup or an emoji.
            text = escaping.visible(line)
            self._console.print(text, soft_wrap=True, markup=False, emoji=False, highlight=False)


class _Bars:
    """The bars of a terminal, one for each label. Elsewhere they are not imported."""

    def __init__(self, console: Console) -> None:
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
        )

        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[failed]} failed"),
            TextColumn("{task.fields[rate]}/s"),
            TextColumn("{task.fields[spent]}"),
            TimeRemainingColumn(),
            console=console,
        )
        self._tasks: dict[str, TaskID] = {}
        self._task = self._add("", total=None, visible=False)
        self.start, self.stop = self._progress.start, self._progress.stop

    def begin(self, label: str, done: int, total: int, *, spent: str) -> None:
        if label not in self._tasks:
            self._tasks[label] = self._add(label, total=total, visible=True)
        self._task = self._tasks[label]
        self._progress.reset(
            self._task, total=total, completed=done, failed=0, rate="0.0", spent=spent
        )

    def advance(self, *, failed: int, rate: float, spent: str) -> None:
        self._progress.update(self._task, advance=1, failed=failed, rate=f"{rate:.1f}", spent=spent)

    def _add(self, label: str, *, total: int | None, visible: bool) -> TaskID:
        return self._progress.add_task(
            escaping.visible(label), total=total, visible=visible, failed=0, rate="0.0", spent=""
        )


def seldom() -> Callable[[str], None]:
    """Says what is done next, every few seconds at most."""
    last = -_SECONDS_BETWEEN_LINES

    def report(what: str) -> None:
        nonlocal last
        if time.monotonic() - last >= _SECONDS_BETWEEN_LINES / 5:
            last = time.monotonic()
            tell(what)

    return report


def counted(items: Iterable[T], what: str, of: int | None = None) -> Iterator[T]:
    """Give items one by one and say every few seconds how many there were, `of` how many."""
    total = "" if of is None else f" of {of:,}"
    last = time.monotonic()
    for number, item in enumerate(items, start=1):
        yield item
        if time.monotonic() - last >= _SECONDS_BETWEEN_LINES:
            last = time.monotonic()
            tell(f"{number:,}{total} {what}")
