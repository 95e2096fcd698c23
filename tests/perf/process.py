"""Timing whole processes, start-up and exit included."""

from __future__ import annotations

import os
import subprocess
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Cost:
    """What one process took.

    Attributes:
        wall: seconds from its start to its end.
        cpu: seconds of user and system time.
        peak: largest resident memory in MiB.
    """

    wall: float
    cpu: float
    peak: float


def run(command: Sequence[str], *, folder: Path, log: Path, environment: Mapping[str, str]) -> Cost:
    """Run a process to its end; what it prints goes to the log. A failure is a RuntimeError."""
    with log.open("wb") as output:
        start = time.perf_counter()
        process = subprocess.Popen(  # noqa: S603 - our own commands
            command,
            cwd=folder,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{command[0]} ended with {process.returncode}: see {log}")
    return Cost(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)
