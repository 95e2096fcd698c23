"""`python -m tests.called_files ARGUMENT…`: the files of pii_bench that a command calls.

The last line of output is a JSON array. What runs while a module is imported does not count.
"""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pii_bench.cli import main
from tests.conftest import REPOSITORY

if TYPE_CHECKING:
    from types import FrameType

_PACKAGE: Final = str(REPOSITORY / "pii_bench")


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        code = frame.f_code
        if code.co_name == "<module>" and code.co_filename.startswith(_PACKAGE):
            return True
        frame = frame.f_back
    return False


def called_files(arguments: list[str]) -> list[str]:
    """Run a command and return the called files, relative to the package, in order."""
    called: set[str] = set()

    def record(frame: FrameType, event: str, _: Any) -> None:
        path = frame.f_code.co_filename
        is_new_call = event == "call" and path.startswith(_PACKAGE) and path not in called
        if is_new_call and not _is_importing(frame):
            called.add(path)

    threading.setprofile(record)
    sys.setprofile(record)
    try:
        main(arguments)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return sorted(str(Path(path).relative_to(_PACKAGE)) for path in called)


if __name__ == "__main__":
    files = called_files(sys.argv[1:])
    sys.stdout.write(json.dumps(files) + "\n")
