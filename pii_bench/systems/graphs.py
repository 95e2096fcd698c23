"""Networks as files that onnxruntime runs."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from pii_bench.errors import InputFileError

if TYPE_CHECKING:
    from pathlib import Path


def load_graph(path: Path) -> Any:
    """A session of onnxruntime on one thread: for one text two threads take twice the time.

    Args:
        path: of an ONNX graph.

    Raises:
        InputFileError: it is no graph.
    """
    onnxruntime = _onnxruntime()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    try:
        return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        # The package exports none of its exceptions, and their only base is this one.
        raise InputFileError(path, "is no ONNX graph") from error


def quantise(path: Path) -> None:
    """Make a graph compute in 8 bits: its matrices, and what they are multiplied with."""
    _onnxruntime()
    from onnxruntime.quantization import quantize_dynamic

    quantize_dynamic(
        path,
        path,
        op_types_to_quantize=["MatMul", "Gather"],
        per_channel=True,
        # 7 bits: processors without VNNI add two products of 8 bits in 16 and overflow.
        reduce_range=True,
        extra_options={"MatMulConstBOnly": True},
    )


def _onnxruntime() -> Any:
    # From 1.29 on it reports to Microsoft how it is used, unless this is set before its import.
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    import onnxruntime

    return onnxruntime
