"""The command line: the last module of the suite, and the only one that prints."""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING

from pii_bench.cli.command_line import parse_arguments
from pii_bench.cli.terminal import OutputError, finish, tell
from pii_bench.errors import PiiBenchError

if TYPE_CHECKING:
    from collections.abc import Sequence

DONE = 0
INCOMPLETE = 1
WRONG_INPUT = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Returns:
        0 done; 1 the run is incomplete, and running it again does only what is missing;
        2 wrong arguments or input.
    """
    for stream in (sys.stdout, sys.stderr):
        # A character that the terminal's encoding lacks is shown by its number.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        parsed = parse_arguments(arguments)
        complete = parsed.run(parsed)
        finish()
    except PiiBenchError as error:
        tell(f"pii-bench: {error}")
        return INCOMPLETE if isinstance(error, OutputError) else WRONG_INPUT
    except KeyboardInterrupt:
        tell("pii-bench: interrupted")
        return INCOMPLETE
    except BrokenPipeError:
        # The reader of our output has gone; Python would complain at exit.
        sys.stderr.close()
        return DONE
    except OSError as error:
        # Of a file that no module expects trouble with, such as one that may not be looked at.
        where = "" if error.filename is None else f"{error.filename}: "
        tell(f"pii-bench: {where}{error.strerror or error}")
        return WRONG_INPUT
    return DONE if complete else INCOMPLETE
