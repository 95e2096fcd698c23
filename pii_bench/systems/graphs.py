"""Neural networks as ONNX graphs."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from pii_bench.errors import InputFileError

if TYPE_CHECKING:
    from pathlib import Path


def load_graph(path: Path) -> Any:
    """Open an ONNX graph in onnxruntime, on one thread: two take twice as long for one text.

    Raises:
        InputFileError: the file is not an ONNX graph.
    """
    onnxruntime = _onnxruntime()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    try:
        return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        # onnxruntime exports none of its exceptions.
        raise InputFileError(path, "not an ONNX graph") from error


def quantise(path: Path) -> None:
    """Quantise a graph file to 8 bits, weights and activations.

    Matrices with more rows than columns are stored in 16 bits and compute with floats: their
    inputs mix a few large numbers with many small ones, which 8 bits cannot distinguish.
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
        # Only matrices that are stored in the graph.
        extra_options={"MatMulConstBOnly": True},
    )


def _halve_narrowing(path: Path) -> None:
    """Store the matrices with more rows than columns in 16 bits, each with a cast to float."""
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
    # Since 1.29 it sends usage data to Microsoft unless this is set before the import.
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    import onnxruntime

    return onnxruntime
