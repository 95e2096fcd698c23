"""Neural networks as ONNX graphs."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from pii_bench.errors import InputFileError

if TYPE_CHECKING:
    from pathlib import Path

# Since 1.29 onnxruntime sends usage data to Microsoft unless this is set before its import.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")


def load_graph(path: Path) -> Any:
    """Open an ONNX graph in onnxruntime, on one thread: two take twice as long for one text.

    Raises:
        InputFileError: the file is not an ONNX graph.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    try:
        return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        # onnxruntime exports none of its exceptions.
        raise InputFileError(path, "not an ONNX graph") from error
