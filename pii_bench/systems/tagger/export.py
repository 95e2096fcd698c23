"""The trained network as files: torch's own, and an ONNX graph for onnxruntime.

The graph is written node by node: the exporter of torch 2.13 fixes the number of tokens behind
an LSTM to that of its example.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import numpy as np
import onnx
from onnx import helper, numpy_helper
from safetensors.torch import load_file, save

from pii_bench.files import replacing, writing
from pii_bench.systems.tagger.files import LOG, read_decoder
from pii_bench.systems.tagger.labels import LABELS
from pii_bench.systems.tagger.network import BiLstmCrf
from pii_bench.systems.tagger.settings import Sizes
from pii_bench.systems.tagger.vocabulary import CHARACTERS

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

WEIGHTS: Final = "weights.safetensors"

_OPSET: Final = 17
_IR_VERSION: Final = 8

# In the order of ONNX.
_DIRECTIONS: Final = ("rightwards", "leftwards")


def write_network(folder: Path, network: BiLstmCrf) -> None:
    """Write `WEIGHTS`: half precision, to which `fit` rounded them.

    Raises:
        ResultsError: it cannot be written.
    """
    halves = {name: weight.half() for name, weight in network.state_dict().items()}
    with writing(folder / WEIGHTS), replacing(folder / WEIGHTS) as file:
        file.write(save(halves))


def read_network(folder: Path) -> BiLstmCrf:
    """The network of a folder that `train` wrote, in evaluation mode.

    Raises:
        InputFileError: the vocabulary is missing or broken.
    """
    settings = json.loads((folder / LOG).read_text(encoding="utf-8"))["settings"]
    vocabulary = read_decoder(folder).vocabulary
    network = BiLstmCrf(vocabulary, Sizes(**settings["sizes"]), settings["dropout"])
    network.load_state_dict(load_file(folder / WEIGHTS))
    return network.eval()


def emissions_graph(network: BiLstmCrf) -> onnx.ModelProto:
    """The graph of `network.emissions` for one text, with weights of half precision.

    Inputs are `vocabulary.INPUTS`; the output `emissions` has the shape (1, tokens, labels). It
    computes in single precision: like the network, whose weights `fit` rounded.
    """
    weights = {
        name: weight.numpy(force=True) for name, weight in network.emissions.state_dict().items()
    }
    states = 2 * network.emissions.rightwards.hidden_size
    tables = {
        "words_table": weights["words.weight"],
        "shapes_table": weights["shapes.weight"],
        "characters_table": weights["characters.weight"],
        "filters": weights["convolution.weight"],
        "filters_bias": weights["convolution.bias"],
        "lstm_input": _lstm(weights, "weight_ih"),
        "lstm_recurrent": _lstm(weights, "weight_hh"),
        "lstm_bias": np.concatenate([_lstm(weights, "bias_ih"), _lstm(weights, "bias_hh")], 1),
        "output": weights["output.weight"].T,
        "output_bias": weights["output.bias"],
    }
    node = helper.make_node
    nodes = [node("Cast", [f"{name}16"], [name], to=onnx.TensorProto.FLOAT) for name in tables]
    nodes += [
        node("Gather", ["characters_table", "spellings"], ["letters"]),
        node("Transpose", ["letters"], ["columns"], perm=[0, 2, 1]),
        node("Conv", ["columns", "filters", "filters_bias"], ["filtered"], pads=[1, 1]),
        node("ReduceMax", ["filtered"], ["peaks"], axes=[2], keepdims=0),
        node("Gather", ["peaks", "places"], ["spelling"]),
        node("Gather", ["words_table", "words"], ["word"]),
        node("Gather", ["shapes_table", "shapes"], ["shape"]),
        node("Concat", ["word", "shape", "spelling"], ["seen"], axis=2),
        node("Transpose", ["seen"], ["steps"], perm=[1, 0, 2]),
        node(
            "LSTM",
            ["steps", "lstm_input", "lstm_recurrent", "lstm_bias"],
            ["directions"],
            hidden_size=states // 2,
            direction="bidirectional",
        ),
        node("Transpose", ["directions"], ["pairs"], perm=[2, 0, 1, 3]),
        node("Reshape", ["pairs", "states_shape"], ["states"]),
        node("MatMul", ["states", "output"], ["scores"]),
        node("Add", ["scores", "output_bias"], ["emissions"]),
    ]
    initializers = [
        numpy_helper.from_array(table.astype(np.float16), f"{name}16")
        for name, table in tables.items()
    ]
    states_shape = np.array([1, -1, states], np.int64)
    int64, one, tokens = onnx.TensorProto.INT64, 1, "tokens"
    graph = helper.make_graph(
        nodes,
        "emissions",
        inputs=[
            helper.make_tensor_value_info("words", int64, [one, tokens]),
            helper.make_tensor_value_info("shapes", int64, [one, tokens]),
            helper.make_tensor_value_info("spellings", int64, ["spellings", CHARACTERS]),
            helper.make_tensor_value_info("places", int64, [one, tokens]),
        ],
        outputs=[
            helper.make_tensor_value_info(
                "emissions", onnx.TensorProto.FLOAT, [one, tokens, len(LABELS)]
            )
        ],
        initializer=[*initializers, numpy_helper.from_array(states_shape, "states_shape")],
    )
    opset = helper.make_opsetid("", _OPSET)
    model = helper.make_model(
        graph, opset_imports=[opset], ir_version=_IR_VERSION, producer_name="pii_bench"
    )
    onnx.checker.check_model(model, full_check=True)
    return model


def _lstm(weights: dict[str, NDArray[np.float32]], kind: str) -> NDArray[np.float32]:
    """One kind of weights of both directions, with the gates in the order of ONNX."""
    both = []
    for direction in _DIRECTIONS:
        # torch: input, forget, cell, output.  ONNX: input, output, forget, cell.
        inputs, forget, cell, output = np.split(weights[f"{direction}.{kind}_l0"], 4)
        both.append(np.concatenate([inputs, output, forget, cell]))
    return np.stack(both)
