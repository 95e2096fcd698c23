"""Load the weights of an exported encoder into torch, to continue training.

The weights of an 8-bit graph are dequantised.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import onnx
import torch
from onnx import numpy_helper

from pii_bench.errors import InputFileError
from pii_bench.systems.encoder.reader import GRAPH, HEADS

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from pii_bench.systems.encoder.network import JointReader

    Floats = NDArray[np.float32]

_PREFIX: Final = "reader."
_QUANTISED: Final = "_quantized"


def restore(reader: JointReader, *folders: Path) -> None:
    """Load the mean of the weights that `network.export` wrote to the folders.

    Raises:
        InputFileError: a folder lacks weights of the reader, or has them in another shape.
    """
    states = [_weights(reader, folder) for folder in folders]
    mean = {name: sum(state[name] for state in states) / len(states) for name in states[0]}
    reader.load_state_dict(mean, strict=False)


def _weights(reader: JointReader, folder: Path) -> dict[str, torch.Tensor]:
    try:
        graph = onnx.load(folder / GRAPH).graph
        with np.load(folder / HEADS) as file:
            heads = dict(file)
    except (OSError, ValueError) as error:
        raise InputFileError(folder, "holds no trained encoder") from error
    weights = {**_of_graph(graph), **heads, "distance.weight": heads["distance"]}
    found = {name: torch.tensor(weight) for name, weight in weights.items()}
    if reader.crf is not None and "crf.start" in heads:
        found["crf.start"] -= reader.crf.forbidden_start
        found["crf.pairs"] -= reader.crf.forbidden
    # The pooler of the text models is unused, so the graph lacks it.
    own = {name: weight for name, weight in reader.state_dict().items() if ".pooler." not in name}
    if missing := sorted(own.keys() - found.keys()):
        raise InputFileError(folder, f"lacks the weights {missing[0]}: another model or head?")
    for name, weight in own.items():
        if found[name].shape != weight.shape:
            shapes = f"{tuple(found[name].shape)}, not {tuple(weight.shape)}"
            raise InputFileError(folder, f"{name} has the shape {shapes}")
    return {name: found[name] for name in own}


def _of_graph(graph: Any) -> dict[str, Floats]:
    """Return the weights by their names in torch.

    The export transposes the weights of linear layers and drops their names: they are found from
    the bias that is added to the product.
    """
    stored = {array.name: numpy_helper.to_array(array) for array in graph.initializer}
    for node in graph.node:
        # Equal weights are stored once, and some are stored in 16 bits.
        if node.op_type in {"Identity", "Cast"} and node.input[0] in stored:
            stored[node.output[0]] = stored[node.input[0]]
    weights = {
        name.removesuffix(_QUANTISED): _floats(name, stored)
        for name in stored
        if not name.endswith(("_scale", "_zero_point"))
    }
    named = {
        name.removeprefix(_PREFIX): weight
        for name, weight in weights.items()
        if name.startswith(_PREFIX)
    }
    made_by = {name: node for node in graph.node for name in node.output}
    for node in graph.node:
        if node.op_type != "Add":
            continue
        for bias, product in (node.input, reversed(node.input)):
            if bias in stored and bias.endswith(".bias"):
                matrix = _matrix(product, made_by, weights)
                if matrix is not None:
                    name = bias.removeprefix(_PREFIX).removesuffix("bias") + "weight"
                    named[name] = weights[matrix].T
    return named


def _matrix(name: str, made_by: dict[str, Any], weights: dict[str, Floats]) -> str | None:
    """Return the name of the matrix in a product, through scaling and casts."""
    node = made_by[name]
    for factor in node.input:
        plain: str = factor.removesuffix(_QUANTISED)
        if node.op_type in {"MatMul", "MatMulInteger"} and plain in weights:
            return plain
    if node.op_type in {"Mul", "Cast"} and node.input[0] in made_by:
        return _matrix(node.input[0], made_by, weights)
    return None


def _floats(name: str, stored: dict[str, NDArray[Any]]) -> Floats:
    weight = stored[name]
    if name.endswith(_QUANTISED):
        plain = name.removesuffix(_QUANTISED)
        weight = weight.astype(np.float32) - stored[f"{plain}_zero_point"].astype(np.float32)
        weight = weight * stored[f"{plain}_scale"]
    return weight.astype(np.float32)
