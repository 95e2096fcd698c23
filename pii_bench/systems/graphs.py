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
    """Make a graph compute in 8 bits: its matrices, and what they are multiplied with.

    Matrices that make states narrower compute with floats and are stored as those of 16 bits:
    their inputs are sums of a few large numbers and many small ones, which 8 bits do not tell
    apart.
    """
    _onnxruntime()
    from onnxruntime.quantization import quantize_dynamic

    _halve_narrowing(path)
    quantize_dynamic(
        path,
        path,
        op_types_to_quantize=["MatMul", "Gather"],
        per_channel=True,
        # 7 bits: processors without VNNI add two products of 8 bits in 16 and overflow.
        reduce_range=True,
        # Matrices that are made when the graph is loaded stay as they are.
        extra_options={"MatMulConstBOnly": True},
    )


def _halve_narrowing(path: Path) -> None:
    """Store these matrices in 16 bits; onnxruntime makes floats of them when it loads the graph."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    model = onnx.load(path)
    factors = {node.input[1] for node in model.graph.node if node.op_type == "MatMul"}
    for weight in model.graph.initializer:
        if weight.name in factors and len(weight.dims) == 2 and weight.dims[0] > weight.dims[1]:
            name, half = weight.name, f"{weight.name}_half"
            weight.CopyFrom(
                numpy_helper.from_array(numpy_helper.to_array(weight).astype("float16"), half)
            )
            cast = helper.make_node("Cast", [half], [name], to=TensorProto.FLOAT)
            model.graph.node.insert(0, cast)
    onnx.save(model, path)


def _onnxruntime() -> Any:
    # From 1.29 on it reports to Microsoft how it is used, unless this is set before its import.
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    import onnxruntime

    return onnxruntime
