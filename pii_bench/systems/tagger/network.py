"""The network that scores labels for tokens, and its files for torch and onnxruntime.

The layers on PyPI that score sequences are no longer kept up: the last releases of pytorch-crf,
TorchCRF and torch-struct are of 2019, 2020 and 2021. The ONNX graph is written node by node: the
exporter of torch 2.13 fixes the number of tokens after an LSTM to that of its example.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import numpy as np
import onnx
import torch
from onnx import helper, numpy_helper
from safetensors.torch import load_file, save
from torch import Tensor, nn

from pii_bench.files import replacing, writing
from pii_bench.systems.tagger import LABELS, OUTSIDE, Transitions, may_follow
from pii_bench.systems.tagger.settings import Sizes
from pii_bench.systems.tagger.vocabulary import (
    CHARACTERS,
    LOG,
    PADDING,
    SHAPES,
    inputs_of,
    read_decoder,
)

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from pii_bench.systems.tagger.train import Batch
    from pii_bench.systems.tagger.vocabulary import Features, Vocabulary

FORBIDDEN: Final = -1e4
"""Added to the score of a step that no BIO sequence takes."""


class Crf(nn.Module):
    """A linear-chain conditional random field over BIO labels (Lafferty et al. 2001)."""

    forbidden: Tensor
    forbidden_start: Tensor

    def __init__(self) -> None:
        super().__init__()
        count = len(LABELS)
        self.start = nn.Parameter(torch.empty(count).uniform_(-0.1, 0.1))
        self.end = nn.Parameter(torch.empty(count).uniform_(-0.1, 0.1))
        self.pairs = nn.Parameter(torch.empty(count, count).uniform_(-0.1, 0.1))
        steps = [[may_follow(before, label) for label in range(count)] for before in range(count)]
        allowed = torch.tensor(steps)
        self.register_buffer("forbidden", ~allowed * FORBIDDEN, persistent=False)
        self.register_buffer("forbidden_start", ~allowed[OUTSIDE] * FORBIDDEN, persistent=False)

    @property
    def start_scores(self) -> Tensor:
        """The score of each label as the first, shape (labels,)."""
        return self.start + self.forbidden_start

    @property
    def pair_scores(self) -> Tensor:
        """The score of each label (column) after another (row), shape (labels, labels)."""
        return self.pairs + self.forbidden

    def log_partition(self, emissions: Tensor, mask: Tensor) -> Tensor:
        """Log of the sum of exp(score) over all label sequences of each text, shape (texts,).

        This is the forward algorithm. `emissions` has the shape (texts, tokens, labels), `mask`
        (texts, tokens): true for tokens, false for the padding after them.
        """
        pairs = self.pair_scores
        total = self.start_scores + emissions[:, 0]
        for place in range(1, emissions.shape[1]):
            step = torch.logsumexp(total.unsqueeze(2) + pairs, dim=1) + emissions[:, place]
            total = torch.where(mask[:, place, None], step, total)
        return torch.logsumexp(total + self.end, dim=1)

    def score(self, emissions: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
        """Score of one label sequence per text, shape (texts,); see `log_partition`.

        `labels` has the shape (texts, tokens), with any legal label where the mask is false.
        """
        own = emissions.gather(2, labels.unsqueeze(2)).squeeze(2)
        steps = self.pair_scores[labels[:, :-1], labels[:, 1:]]
        last = labels.gather(1, mask.sum(1, keepdim=True) - 1).squeeze(1)
        inner = (own * mask).sum(1) + (steps * mask[:, 1:]).sum(1)
        return self.start_scores[labels[:, 0]] + inner + self.end[last]

    def loss(self, emissions: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
        """Negative log-likelihood of the labels per text, averaged over the texts."""
        return (self.log_partition(emissions, mask) - self.score(emissions, labels, mask)).mean()


class Emissions(nn.Module):
    """Word, shape and character features through a bidirectional LSTM.

    Huang et al. (2015, Sections 2.5 and 3), with a convolution over characters (Ma and Hovy
    2016, Section 2.1) instead of their n-gram features.
    """

    def __init__(self, vocabulary: Vocabulary, sizes: Sizes, dropout: float) -> None:
        super().__init__()
        self.words = nn.Embedding(vocabulary.word_count, sizes.word, PADDING)
        self.shapes = nn.Embedding(SHAPES, sizes.shape, PADDING)
        self.characters = nn.Embedding(vocabulary.character_count, sizes.character, PADDING)
        self.convolution = nn.Conv1d(sizes.character, sizes.filters, kernel_size=3, padding=1)
        width = sizes.word + sizes.shape + sizes.filters
        # Two, not a bidirectional one: packing, which that needs for padded texts, makes a
        # step of training on a CPU take three times as long.
        self.rightwards = nn.LSTM(width, sizes.hidden, batch_first=True)
        self.leftwards = nn.LSTM(width, sizes.hidden, batch_first=True)
        self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear(2 * sizes.hidden, len(LABELS))

    def forward(
        self,
        words: Tensor,
        shapes: Tensor,
        spellings: Tensor,
        places: Tensor,
        lengths: Tensor,
    ) -> Tensor:
        """Score of each label for each token, shape (texts, tokens, labels); see `Batch`."""
        letters = self.characters(spellings).transpose(1, 2)
        spelling = self.convolution(letters).amax(dim=2)[places]
        seen = torch.cat([self.words(words), self.shapes(shapes), spelling], dim=2)
        seen = self.dropout(seen)
        there, _ = self.rightwards(seen)
        back, _ = self.leftwards(_turn(seen, lengths))
        states = torch.cat([there, _turn(back, lengths)], dim=2)
        scores: Tensor = self.output(self.dropout(states))
        return scores


class BiLstmCrf(nn.Module):
    """The emissions and the conditional random field over them."""

    def __init__(self, vocabulary: Vocabulary, sizes: Sizes, dropout: float) -> None:
        super().__init__()
        self.emissions = Emissions(vocabulary, sizes, dropout)
        self.crf = Crf()

    @property
    def device(self) -> torch.device:
        """The device of the weights."""
        return self.crf.end.device

    def loss(self, batch: Batch) -> Tensor:
        """Negative log-likelihood of the labels per text, averaged over the texts."""
        columns = (batch.words, batch.shapes, batch.spellings, batch.places, batch.lengths)
        scores = self.emissions(*(column.to(self.device) for column in columns))
        labels, mask = batch.labels.to(self.device), batch.mask.to(self.device)
        return self.crf.loss(scores, labels, mask)

    def score(self, features: Features) -> NDArray[np.float32]:
        """Emissions of one text of at least one token, shape (tokens, labels)."""
        columns = [*inputs_of(features).values(), np.array([len(features)])]
        tensors = [torch.from_numpy(column).to(self.device) for column in columns]
        with torch.inference_mode():
            scores: NDArray[np.float32] = self.emissions(*tensors)[0].numpy(force=True)
        return scores

    def transitions(self) -> Transitions:
        """The transitions of the conditional random field, for the decoder."""
        with torch.inference_mode():
            scores = (self.crf.start_scores, self.crf.pair_scores, self.crf.end)
            return Transitions(*(score.numpy(force=True).copy() for score in scores))


def _turn(steps: Tensor, lengths: Tensor) -> Tensor:
    """Reverse the steps of each text, shape (texts, tokens, features), but not its padding."""
    place = torch.arange(steps.shape[1], device=steps.device).expand(steps.shape[:2])
    mirrored = lengths[:, None] - 1 - place
    turned = torch.where(mirrored >= 0, mirrored, place)
    return steps.gather(1, turned.unsqueeze(2).expand_as(steps))


WEIGHTS: Final = "weights.safetensors"


def write_network(folder: Path, network: BiLstmCrf) -> None:
    """Write `WEIGHTS`: half precision, to which `fit` rounded them."""
    halves = {name: weight.half() for name, weight in network.state_dict().items()}
    with writing(folder / WEIGHTS), replacing(folder / WEIGHTS) as file:
        file.write(save(halves))


def read_network(folder: Path) -> BiLstmCrf:
    """Read a network that `train` wrote, in evaluation mode."""
    settings = json.loads((folder / LOG).read_text(encoding="utf-8"))["settings"]
    vocabulary, _ = read_decoder(folder)
    network = BiLstmCrf(vocabulary, Sizes(**settings["sizes"]), settings["dropout"])
    network.load_state_dict(load_file(folder / WEIGHTS))
    return network.eval()


def emissions_graph(network: BiLstmCrf) -> onnx.ModelProto:
    """Return the ONNX graph of `network.emissions` for one text, with half-precision weights.

    The inputs are those of `inputs_of`; the output `emissions` has the shape (1, tokens, labels).
    It computes in single precision: like the network, whose weights `fit` rounded.
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
    value = helper.make_tensor_value_info
    int64 = onnx.TensorProto.INT64
    graph = helper.make_graph(
        nodes,
        "emissions",
        inputs=[
            value("words", int64, [1, "tokens"]),
            value("shapes", int64, [1, "tokens"]),
            value("spellings", int64, ["spellings", CHARACTERS]),
            value("places", int64, [1, "tokens"]),
        ],
        outputs=[value("emissions", onnx.TensorProto.FLOAT, [1, "tokens", len(LABELS)])],
        initializer=[*initializers, numpy_helper.from_array(states_shape, "states_shape")],
    )
    opset = helper.make_opsetid("", 17)
    model = helper.make_model(graph, opset_imports=[opset], ir_version=8, producer_name="pii_bench")
    onnx.checker.check_model(model, full_check=True)
    return model


def _lstm(weights: dict[str, NDArray[np.float32]], kind: str) -> NDArray[np.float32]:
    """One kind of weights of both directions, with the gates in the order of ONNX."""
    both = []
    for direction in ("rightwards", "leftwards"):
        # torch: input, forget, cell, output.  ONNX: input, output, forget, cell.
        inputs, forget, cell, output = np.split(weights[f"{direction}.{kind}_l0"], 4)
        both.append(np.concatenate([inputs, output, forget, cell]))
    return np.stack(both)
