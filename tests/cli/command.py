"""Runs `pii-bench`, or our interpreter, in a separate process."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Final

from tests.conftest import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

# Where pytest runs in the background, SIGINT is ignored, and children inherit that.
_CODE: Final = """
import signal, sys
from pii_bench.cli import main
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.exit(main())
"""

COMMAND: Final = (sys.executable, "-c", _CODE)


def environment(**variables: str) -> Mapping[str, str]:
    """Return our environment without keys, with the package of this checkout."""
    ours = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    return ours | {"PYTHONPATH": str(REPOSITORY)} | variables


def run_python(*arguments: str, cwd: Path | None = None, **variables: str) -> str:
    """Run our interpreter, which must succeed, and return its standard output."""
    done = subprocess.run(  # noqa: S603 -- our own interpreter and arguments
        [sys.executable, *arguments],
        check=False,
        capture_output=True,
        encoding="utf-8",
        cwd=cwd,
        env=environment(**variables),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
