"""The trained network as files that run without torch."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Final

import numpy as np
import onnx
import torch
from onnx import helper, numpy_helper

from pii_bench.systems.encoder.files import GRAPH, HEADS, TOKENIZER
from pii_bench.systems.encoder.network import Exported

if TYPE_CHECKING:
    from pathlib import Path

    from pii_bench.systems.encoder.network import JointReader

_LARGE: Final = 20_000


def export(reader: JointReader, tokenizer: Path, folder: Path, *, quantised: bool) -> None:
    """Write graph, heads and tokenizer.

    Args:
        reader: in evaluation mode.
        tokenizer: file of the encoder's tokenizer, copied without its truncation and padding.
        folder: where the files go.
        quantised: whether the weights are of 8 bits; what is computed from them is not.
    """
    folder.mkdir(parents=True, exist_ok=True)
    # As a graph, attention written out takes a quarter less time than PyTorch's own.
    reader = deepcopy(reader)
    reader.encoder.set_attn_implementation("eager")
    example = torch.ones((1, 8), dtype=torch.long)
    inputs = dict.fromkeys(("input_ids", "attention_mask", "token_type_ids"), example)
    if reader.spelling is not None:
        inputs["spelled"] = torch.ones((1, 8, 16), dtype=torch.long)
    axes = {0: "windows", 1: "subwords"}
    path = folder / GRAPH
    with torch.no_grad():
        torch.onnx.export(
            Exported(reader),
            tuple(inputs.values()),
            str(path),
            input_names=list(inputs),
            output_names=["states", "labels"],
            dynamic_axes=dict.fromkeys((*inputs, "states", "labels"), axes),
            opset_version=17,
            dynamo=False,
        )
    if quantised:
        graph = onnx.load(path)
        _quantise(graph)
        onnx.save(graph, path)
    heads = {
        f"{name}.{key}": weight.numpy(force=True).astype(np.float32)
        for name in ("relevance", "owner")
        for key, weight in getattr(reader, name).state_dict().items()
    }
    heads["distance"] = reader.distance.weight.numpy(force=True).astype(np.float32)
    if reader.crf is not None:
        heads["crf.start"] = reader.crf.start_scores.numpy(force=True)
        heads["crf.pairs"] = reader.crf.pair_scores.numpy(force=True)
        heads["crf.end"] = reader.crf.end.numpy(force=True)
    np.savez(folder / HEADS, **heads)
    from tokenizers import Tokenizer

    plain = Tokenizer.from_file(str(tokenizer))
    plain.no_truncation()
    plain.no_padding()
    plain.save(str(folder / TOKENIZER))


def _quantise(model: onnx.ModelProto) -> None:
    """Write large matrices in 8 bits with a scale for each row (embeddings) or column.

    Activations stay floats: to round them as well costs 0.01 F1.
    """
    graph = model.graph
    opening = []
    looked_up = {node.input[0] for node in graph.node if node.op_type == "Gather"}
    for weights in list(graph.initializer):
        matrix = numpy_helper.to_array(weights)
        if matrix.dtype != np.float32 or matrix.ndim != 2 or matrix.size < _LARGE:
            continue
        axis = 0 if weights.name in looked_up else 1
        scale = np.abs(matrix).max(axis=1 - axis, keepdims=True) / 127
        scale[scale == 0] = 1
        rounded = np.round(matrix / scale).astype(np.int8)
        names = f"{weights.name}.int8", f"{weights.name}.scale"
        graph.initializer.remove(weights)
        graph.initializer.append(numpy_helper.from_array(rounded, names[0]))
        graph.initializer.append(numpy_helper.from_array(scale.ravel(), names[1]))
        opening.append(helper.make_node("DequantizeLinear", names, [weights.name], axis=axis))
    for node in reversed(opening):
        graph.node.insert(0, node)
