"""Neural networks as ONNX graphs."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

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


_LARGEST: Final = 8.0


def quantise(path: Path) -> None:
    """Quantise a graph file to 8 bits, weights and activations.

    The inputs of matrices with more rows than columns are limited to the range of `_LARGEST`. A
    layer has one step of 8 bits for all its inputs: a few large ones would make it too coarse for
    the others. (Of 4, 6 and 8, the last was best on dev, and better than no limit.)
    """
    _onnxruntime()
    from onnxruntime.quantization import quantize_dynamic

    _limit_inputs(path)
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


def _limit_inputs(path: Path) -> None:
    """Put a `Clip` in front of each product with a matrix that has more rows than columns."""
    import onnx
    from onnx import TensorProto, helper

    model = onnx.load(path)
    graph = model.graph
    narrowing = {
        weight.name
        for weight in graph.initializer
        if len(weight.dims) == 2 and weight.dims[0] > weight.dims[1]
    }
    limits = {"least": -_LARGEST, "largest": _LARGEST}
    graph.initializer.extend(
        helper.make_tensor(name, TensorProto.FLOAT, [], [limit]) for name, limit in limits.items()
    )
    nodes = []
    for node in graph.node:
        if node.op_type == "MatMul" and node.input[1] in narrowing:
            limited = f"{node.output[0]}_limited"
            nodes.append(helper.make_node("Clip", [node.input[0], *limits], [limited]))
            node.input[0] = limited
        nodes.append(node)
    del graph.node[:]
    graph.node.extend(nodes)
    onnx.save(model, path)


def _onnxruntime() -> Any:
    # Since 1.29 it sends usage data to Microsoft unless this is set before the import.
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    import onnxruntime

    return onnxruntime
