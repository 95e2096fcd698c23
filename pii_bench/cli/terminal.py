"""Standard streams: results on standard output; messages and progress on standard error.

What prints to standard output raises `OutputError` if it cannot be written.
"""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import contextmanager
from dataclasses import asdict
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, Self, TextIO, TypeVar

from pii_bench import escaping
from pii_bench.errors import PiiBenchError
from pii_bench.runs.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from rich.console import Console
    from rich.progress import Progress as Bars
    from rich.progress import TaskID

    from pii_bench.datasets.catalog import Dataset, DatasetStream
    from pii_bench.models.budget import Estimate, Ledger
    from pii_bench.ranking.rows import Row
    from pii_bench.ranking.scores import Interval
    from pii_bench.runs.jobs import Job

T = TypeVar("T")

BIG: Final = 100 * 10**6
"""Bytes from which an export announces its size before it writes."""

_SECONDS_BETWEEN_LINES: Final = 10.0


class OutputError(PiiBenchError):
    """Standard output cannot be written, as on a full disk."""


class OutputClosedError(OutputError):
    """The reader of standard output, such as `head`, has read enough."""


def echo(text: str = "", *, end: str = "\n") -> None:
    """Print a result to standard output, with control characters escaped."""
    with _output_errors():
        print(escaping.terminal(text), end=end)


def echo_json(value: Sequence[object] | Mapping[str, object]) -> None:
    """Print rows as a JSON array, or one object, in ASCII; dates become strings.

    Raises:
        ValueError: a number is not finite.
    """
    text = json.dumps(value, indent=2, default=str, allow_nan=False)
    # JSON leaves DEL as it is, and `echo` would escape it in a way that JSON does not know.
    echo(text.replace("\x7f", "\\u007f"))


def echo_exactly(text: str) -> None:
    """Print a text of the user's without escaping."""
    with _output_errors():
        sys.stdout.flush()
        sys.stdout.buffer.write(text.encode("utf-8", "surrogatepass"))
        sys.stdout.flush()


def standard_input() -> TextIO:
    """Return standard input.

    Raises:
        PiiBenchError: it is closed.
    """
    if sys.stdin is None:
        raise PiiBenchError("standard input is closed")
    return sys.stdin


def flush() -> None:
    """Flush standard output."""
    with _output_errors():
        sys.stdout.flush()


@contextmanager
def _output_errors() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        # Python flushes the buffer once more at exit, which would fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        reason = error.strerror or str(error)
        kind = OutputClosedError if isinstance(error, BrokenPipeError) else OutputError
        raise kind(f"standard output cannot be written: {reason}") from error


def log(text: str) -> None:
    """Print a message to standard error, with control characters escaped."""
    print(escaping.terminal(text), file=sys.stderr, flush=True)


def report(text: str, *, as_json: bool) -> None:
    """Print a message after a result: to standard error if that is JSON."""
    if as_json:
        log(text)
    else:
        echo(text)


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: `1 row`, `2 rows`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def formatted(value: float | None, form: str, unknown: str = "") -> str:
    """Return a number in a format such as `.3f`, or `unknown`."""
    return unknown if value is None else format(value, form)


def with_interval(figure: float, interval: Interval | None, sign: str = "") -> str:
    """Return a figure with three digits and its interval, if it has one."""
    if interval is None:
        return f"{figure:{sign}.3f}"
    return f"{figure:{sign}.3f} [{interval.low:{sign}.3f}, {interval.high:{sign}.3f}]"


def bounds(interval: Interval | None) -> list[float] | None:
    """Return an interval for JSON."""
    return None if interval is None else [interval.low, interval.high]


def log_left_out(reasons: Iterable[str]) -> None:
    """Log which stored runs are left out, and why."""
    for reason in reasons:
        log(f"left out: {reason}")


def log_faults(dataset: Dataset | DatasetStream) -> None:
    """Log the faulty annotations that a dataset leaves out, if any."""
    if dataset.faults:
        log(f"{dataset.source}: annotation faults left out: {len(dataset.faults)}")
        for fault in dataset.faults:
            log(f"  {fault}")


def log_big(size: int, out: Path, *, compressed: bool) -> None:
    """Log the size of an export, in bytes before compression, if it is large."""
    if size >= BIG:
        hint = "before they are compressed" if compressed else "--gzip compresses them"
        log(f"about {size / 1e6:,.0f} MB of samples for {out}: {hint}")


def log_progress(items: Iterable[T], what: str, of: int | None = None) -> Iterator[T]:
    """Yield the items, and log every 10 seconds how many are done, such as "9 of 12 read"."""
    total = "" if of is None else f" of {of:,}"
    last = time.monotonic()
    for number, item in enumerate(items, start=1):
        yield item
        if time.monotonic() - last >= _SECONDS_BETWEEN_LINES:
            last = time.monotonic()
            log(f"{number:,}{total} {what}")


def update_leaderboard(
    results: Path, loaded: Iterable[Dataset] = (), *, as_json: bool
) -> tuple[list[Row], bool]:
    """Update the leaderboard files, and report where they are.

    Args:
        results: the results folder.
        loaded: datasets that need not be loaded again.
        as_json: True if the command prints JSON.

    Returns:
        The rows, and whether no run was left out.
    """
    from pii_bench.ranking.stored import update

    board = update(results, loaded)
    log_left_out(board.left_out)
    first, *others = board.files
    suffixes = ", ".join(path.suffix for path in others)
    report(f"leaderboard: {first} (also {suffixes})", as_json=as_json)
    return list(board.rows), not board.left_out


def echo_rows(rows: Sequence[Row], *, as_json: bool) -> None:
    """Print a table for each dataset and task, and the signatures of the rows; or JSON."""
    from pii_bench.ranking.render import record_of, to_table

    if as_json:
        echo_json([record_of(row) for row in rows])
        return
    for (dataset, task), group in groupby(rows, key=lambda row: (row.dataset, row.task)):
        echo(f"\n{dataset}: {task}\n\n{to_table(list(group))}")
    if rows:
        echo()
    for row in rows:
        if row.signature:
            echo(row.signature)


def echo_estimates(
    estimates: Sequence[tuple[Job, Estimate]], *, as_json: bool, models: bool = False
) -> None:
    """Print the calls, tokens and cost of each job, and their sum; `models` adds their column."""
    from pii_bench.runs.jobs import sum_estimates

    records, rows = [], []
    names = ("model", "prompt", "dataset") if models else ("prompt", "dataset")
    for job, estimate in estimates:
        card = job.system.card
        record = {"model": card.model, "prompt": card.prompt, "dataset": job.dataset.name}
        records.append(record | asdict(estimate))
        rows.append([*(record[name] for name in names), *_cells(estimate)])
    if as_json:
        echo_json(records)
        return
    if len(rows) > 1:
        total = sum_estimates(estimate for _, estimate in estimates)
        rows.append(["total", *[""] * (len(names) - 1), *_cells(total)])
    header = [*names, "calls", "tokens in", "tokens out", "USD"]
    echo(escaping.markdown_table(header, rows, ["left"] * len(names) + ["right"] * 4))
    echo("low / expected / high; no call was made. High is a bound, except for failed attempts.")


def _cells(estimate: Estimate) -> tuple[str, ...]:
    calls = f"{estimate.calls:,}"
    tokens = [
        f"{count.low:,} / {count.expected:,} / {count.high:,}"
        for count in (estimate.input_tokens, estimate.output_tokens)
    ]
    usd = estimate.usd
    cost = "unknown" if usd is None else f"{usd.low:.2f} / {usd.expected:.2f} / {usd.high:.2f}"
    return calls, *tokens, cost


class RunProgress(Progress):
    """Shows the progress of one run after another: bars on a terminal, otherwise lines."""

    def __init__(self, console: Console | None = None) -> None:
        """`console` is the terminal in tests."""
        if console is None and sys.stderr.isatty():
            from rich.console import Console

            console = Console(stderr=True)
        self._bars = _bars(console) if console is not None and console.is_terminal else None
        self._tasks: dict[str, TaskID] = {}
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
        """Set the name and the ledger of the run that starts next."""
        self._label, self._ledger = text, ledger

    def started(self, done: int, total: int) -> None:
        """Start or resume the run of the current label with `done` of `total` samples answered."""
        self._total, self._before, self._advanced, self._failed = total, done, 0, 0
        self._start = self._last_line = time.monotonic()
        if self._bars:
            fields: dict[str, Any] = {"failed": 0, "rate": "0.0", "spent": self._spent()}
            if self._label not in self._tasks:
                name = escaping.visible(self._label)
                self._tasks[self._label] = self._bars.add_task(name, total=total, **fields)
            self._bars.reset(self._tasks[self._label], total=total, completed=done, **fields)
        if self._label in self._labels:
            return
        self._labels.add(self._label)
        if done:
            self.note(f"{done} of {total} already answered")
        if not self._bars and done < total:
            self.note(f"{total - done} to answer")

    def advanced(self, *, failed: bool) -> None:
        """Count one more sample, answered or failed."""
        self._advanced += 1
        self._failed += failed
        seconds = time.monotonic() - self._start
        rate = self._advanced / seconds if seconds else 0.0
        if self._bars:
            self._bars.update(
                self._tasks[self._label],
                advance=1,
                failed=self._failed,
                rate=f"{rate:.1f}",
                spent=self._spent(),
            )
        else:
            self._print_line(rate)

    def waiting(self, *, finished: int, total: int) -> None:
        """Print how many requests of the running batches the provider has finished."""
        self.note(f"batches: {finished} of {total or '?'} finished")

    def note(self, what: str) -> None:
        """Print a message with the label of the run."""
        line = f"{self._label}: {what}"
        if self._bars is None:
            log(line)
        else:
            # Names must not be wrapped or read as markup or emoji.
            console, text = self._bars.console, escaping.visible(line)
            console.print(text, soft_wrap=True, markup=False, emoji=False, highlight=False)

    def _spent(self) -> str:
        spent = self._ledger.spent_usd if self._ledger else None
        return "" if spent is None else f"{spent:.4f} USD"

    def _print_line(self, rate: float) -> None:
        done = self._before + self._advanced
        now = time.monotonic()
        if done < self._total and now - self._last_line < _SECONDS_BETWEEN_LINES:
            return
        self._last_line = now
        left = (self._total - done) / rate if rate else 0.0
        spent = f", {self._spent()}" if self._spent() else ""
        self.note(
            f"{done} of {self._total} done, {self._failed} failed, {rate:.1f}/s, "
            f"{left:.0f} s left{spent}"
        )


def _bars(console: Console) -> Bars:
    """Return the progress bars of a terminal, one for each label."""
    from rich import progress

    return progress.Progress(
        progress.TextColumn("{task.description}", markup=False),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TextColumn("{task.fields[failed]} failed"),
        progress.TextColumn("{task.fields[rate]}/s"),
        progress.TextColumn("{task.fields[spent]}"),
        progress.TimeRemainingColumn(),
        console=console,
    )
