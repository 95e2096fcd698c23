from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def test_onnxruntime_stores_no_usage_data(tmp_path: Path) -> None:
    # Without `CI`, which disables its reports.
    environment = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    code = "from pii_bench.systems.detectors import build_detector; build_detector('bilstm-crf')"

    subprocess.run(  # noqa: S603 -- our own interpreter and code
        [sys.executable, "-c", code], env=environment | {"HOME": str(tmp_path)}, check=True
    )

    assert not [*tmp_path.iterdir()]
