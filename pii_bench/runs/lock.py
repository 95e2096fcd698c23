"""One run at a time in a folder of results."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from filelock import FileLock, Timeout

from pii_bench.files import ResultsError, remove_leftovers, writing

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LOCK_NAME: Final = ".lock"


@contextmanager
def locked(folder: Path, *, wait: float = 0.0) -> Iterator[None]:
    """Keep others out of a folder, which is made where needed, until the block ends.

    The lock is the operating system's: it ends with the process, however that ends, and the
    file that stays behind locks nothing. Temporary files that a killed process left in the
    folder, or in the folders in it, are removed.

    Args:
        folder: one model's, or that of the leaderboard.
        wait: seconds to wait for who holds it; 0 to give up at once.

    Raises:
        ResultsError: another run holds it, or the folder cannot be written.
    """
    lock = FileLock(folder / LOCK_NAME, timeout=wait)
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire()
        except Timeout:
            what = "another run is writing there: let it end, or give another --results"
            raise ResultsError(f"{folder}: {what}") from None
    try:
        remove_leftovers(folder)
        yield
    finally:
        lock.release()
