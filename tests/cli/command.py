"""Runs `pii-bench` in a separate process."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Final

from tests.conftest import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Mapping

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
