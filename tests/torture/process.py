"""Trials, and running `pii-bench` in a separate process and measuring its memory."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tests.cli.command import environment

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

KEY: Final = "sk-planted-key-0123456789"
PLANTED: Final = "Rosalind Achebe"
"""A name in every sample text, which must not be printed."""

LONGEST: Final = 3000.0
"""Seconds after which a process counts as hung."""

# 12 GB of memory and 300 CPU seconds (up to an hour on a busy machine) are far more than any
# command needs; they stop a bomb.
_CODE: Final = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (12 << 30, 12 << 30))
resource.setrlimit(resource.RLIMIT_CPU, (300, 300))
from pii_bench.cli import main
sys.exit(main())
"""

_CONTROL: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]")


@dataclass(frozen=True, slots=True)
class Trial:
    """The result of one trial of an attack.

    Attributes:
        name: The variant that was tried.
        broken: Expectations that were not met.
    """

    name: str
    broken: tuple[str, ...] = ()

    @classmethod
    def of(cls, name: str, checks: dict[str, bool]) -> Trial:
        """Return a trial; `checks` maps each expectation to whether it was met."""
        return cls(name, tuple(expectation for expectation, met in checks.items() if not met))


@dataclass(frozen=True, slots=True)
class Ended:
    """The result of a process.

    Attributes:
        code: Exit code; None if it hung, negative if a signal ended it.
        out: Standard output.
        err: Standard error.
        megabytes: Peak memory.
    """

    code: int | None
    out: str
    err: str
    megabytes: float

    def checks(self, codes: Sequence[int] = (0, 1, 2)) -> dict[str, bool]:
        """Return the expectations for every command and whether they are met."""
        said = self.out + self.err
        return {
            f"ends with code {' or '.join(map(str, codes))}": self.code in codes,
            "no traceback": "Traceback" not in said,
            "no key in what it says": KEY not in said,
            "no text of a sample in what it says": PLANTED not in said,
            "no control character in what it says": not _CONTROL.search(said),
        }


def pii_bench(folder: Path, *arguments: str) -> Ended:
    """Run a command in a folder."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(  # noqa: S603 -- our own interpreter and code
            [sys.executable, "-c", _CODE, *arguments],
            stdout=out,
            stderr=err,
            cwd=folder,
            env=environment(PII_BENCH_API_KEY=KEY),
        )
        watch = threading.Timer(LONGEST, process.kill)
        watch.start()
        _, status, usage = os.wait4(process.pid, 0)
        hung = not watch.is_alive()
        watch.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        return Ended(
            None if hung else process.returncode,
            out.read().decode("utf-8", "replace"),
            err.read().decode("utf-8", "replace"),
            usage.ru_maxrss / 1024,
        )
