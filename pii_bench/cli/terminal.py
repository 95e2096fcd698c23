"""What a command says: results on standard output, all else on standard error."""

from __future__ import annotations

import json
import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pii_bench.errors import PiiBenchError
from pii_bench.escaping import terminal

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


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
