"""The encoder with its heads in torch, its export to files that run without, and the way back."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import quantize_dynamic
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from pii_bench.errors import InputFileError
from pii_bench.systems.encoder.reader import DISTANCES, GRAPH, HEADS, TOKENIZER
from pii_bench.systems.encoder.windows import SPELLED
from pii_bench.systems.tagger import LABELS, OUTSIDE
from pii_bench.systems.tagger.network import Crf
from pii_bench.taxonomy import PiiType, sensitivity

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray
    from transformers import PreTrainedModel

    Floats = NDArray[np.float32]

IGNORED: Final = -100

Head = Literal["linear", "crf", "charcnn-crf"]

_HIDDEN: Final = 192
_DISTANCE: Final = 16
_CHARACTER: Final = 32
_FILTERS: Final = 64
# On the input of the heads.
_DROPOUT: Final = 0.1
# Weight of this loss in the sum; those of labels and relevance have 1.
_OWNERS: Final = 0.5


class Spelling(nn.Module):
    """A gated character CNN: `gate * state + (1 - gate) * spelling`.

    `spelling` is a convolution over the characters of a word with max pooling.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.characters = nn.Embedding(SPELLED, _CHARACTER, padding_idx=0)
        self.convolution = nn.Conv1d(_CHARACTER, _FILTERS, 3, padding=1)
        self.project = nn.Linear(_FILTERS, width)
        self.gate = nn.Linear(2 * width, width)

    def forward(self, hidden: Tensor, spelled: Tensor) -> Tensor:
        """Return states of the shape of `hidden`, (windows, subwords, width).

        `spelled` has the shape (windows, subwords, characters): the word that a subword begins,
        else 0.
        """
        windows, subwords, length = spelled.shape
        letters = self.characters(spelled.view(-1, length)).transpose(1, 2)
        peaks = self.convolution(letters).amax(2)
        spelling = self.project(peaks).view(windows, subwords, -1)
        gate = torch.sigmoid(self.gate(torch.cat([hidden, spelling], 2)))
        fused: Tensor = gate * hidden + (1 - gate) * spelling
        return fused


class JointReader(nn.Module):
    """An encoder with heads for word labels, relevance of spans, and owners of spans.

    The encoder is a pretrained model whose output has `last_hidden_state`; `frozen` ones are not
    trained.
    """

    def __init__(
        self, encoder: PreTrainedModel, head: Head = "linear", *, frozen: bool = False
    ) -> None:
        super().__init__()
        width = int(encoder.config.hidden_size)
        self.encoder = encoder
        self.head = head
        if frozen:
            encoder.requires_grad_(requires_grad=False)
        self.dropout = nn.Dropout(_DROPOUT)
        self.spelling = Spelling(width) if head == "charcnn-crf" else None
        self.labels = nn.Linear(width, len(LABELS))
        self.crf = None if head == "linear" else Crf()
        self.register_buffer("tiers", label_tiers(), persistent=False)
        self.relevance = nn.Sequential(
            nn.Linear(3 * width, _HIDDEN), nn.ReLU(), nn.Linear(_HIDDEN, 1)
        )
        self.distance = nn.Embedding(len(DISTANCES) + 1, _DISTANCE)
        self.owner = nn.Sequential(
            nn.Linear(3 * width + _DISTANCE, _HIDDEN), nn.ReLU(), nn.Linear(_HIDDEN, 1)
        )

    tiers: Tensor

    def states(
        self,
        input_ids: Tensor,
        attention_mask: Tensor,
        token_type_ids: Tensor,
        spelled: Tensor | None = None,
    ) -> Tensor:
        """Return the hidden states, (windows, subwords, width)."""
        given = {"input_ids": input_ids, "attention_mask": attention_mask}
        if getattr(self.encoder.config, "type_vocab_size", 1) > 1:
            given["token_type_ids"] = token_type_ids
        output: Any = self.encoder(**given)
        hidden: Tensor = output.last_hidden_state
        if self.spelling is not None and spelled is not None:
            hidden = self.spelling(hidden, spelled)
        return hidden

    def forward(self, **batch: Tensor) -> dict[str, Tensor]:
        """Return the loss of a batch.

        Its tensors are `input_ids`, `attention_mask` and `token_type_ids`, (windows, subwords);
        `spelled`, see `Spelling`; `labels`, (windows, subwords), `IGNORED` where no word of the
        text begins; `spans`, (spans, 3): window, first subword and end of every mention; `needed`,
        (spans,), see `train.Mention`; `pairs`, (pairs, 3): row of a span, row of a person's
        mention, bucket of the distance; `owned`, (pairs,): whether the span belongs to the person.
        """
        inputs = ("input_ids", "attention_mask", "token_type_ids", "spelled")
        hidden = self.dropout(self.states(*(batch[name] for name in inputs)))
        loss = self._label_loss(self.labels(hidden), batch["labels"])
        spans, needed, pairs = batch["spans"], batch["needed"], batch["pairs"]
        if len(spans):
            pooled = pool(hidden, spans)
            opening = hidden[spans[:, 0], 0]
            asked = needed != IGNORED
            if asked.any():
                seen = torch.cat([pooled, opening, pooled * opening], 1)[asked]
                loss = loss + _two_way(self.relevance(seen), needed[asked])
            if len(pairs):
                own, person = pooled[pairs[:, 0]], pooled[pairs[:, 1]]
                near = self.distance(pairs[:, 2])
                seen = torch.cat([own, person, own * person, near], 1)
                loss = loss + _OWNERS * _two_way(self.owner(seen), batch["owned"])
        return {"loss": loss}

    def _label_loss(self, scores: Tensor, labels: Tensor) -> Tensor:
        weights = self.tiers if self.head == "charcnn-crf" else None
        each = nn.functional.cross_entropy(
            scores.view(-1, len(LABELS)), labels.view(-1), weights, ignore_index=IGNORED
        )
        if self.crf is None:
            return each
        words, gold, mask = words_alone(scores, labels)
        likelihood = self.crf.loss(words, gold, mask) / mask.sum(1).float().mean()
        return likelihood + each if self.head == "charcnn-crf" else likelihood


def label_tiers() -> Tensor:
    """Return the loss weight of each label: the sensitivity tier of its type, 1 to 3; 1 for O."""
    return torch.tensor(
        [1.0 if label == "O" else float(sensitivity(None, PiiType(label[2:]))) for label in LABELS]
    )


def words_alone(scores: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Keep the subwords that begin a word, moved to the front of each window.

    Returns scores (windows, words, labels), labels (windows, words), and the mask (windows, words),
    False for padding.
    """
    opens = labels != IGNORED
    own = [row[words] for row, words in zip(scores, opens, strict=True)]
    gold = [row[words] for row, words in zip(labels, opens, strict=True)]
    mask = pad_sequence([torch.ones_like(row) for row in gold], batch_first=True).bool()
    return (
        pad_sequence(own, batch_first=True),
        pad_sequence(gold, batch_first=True, padding_value=OUTSIDE),
        mask,
    )


def pool(hidden: Tensor, spans: Tensor) -> Tensor:
    """Return the mean state of each span, (spans, width)."""
    before = nn.functional.pad(hidden.cumsum(1), (0, 0, 1, 0))
    window, start, end = spans.unbind(1)
    return (before[window, end] - before[window, start]) / (end - start).unsqueeze(1)


def _two_way(scores: Tensor, gold: Tensor) -> Tensor:
    return nn.functional.binary_cross_entropy_with_logits(scores.squeeze(1), gold.float())


class Exported(nn.Module):
    """The part that is exported as an ONNX graph: encoder and labelling head."""

    def __init__(self, reader: JointReader) -> None:
        super().__init__()
        self.reader = reader

    def forward(self, *inputs: Tensor) -> tuple[Tensor, Tensor]:
        """Return states (windows, subwords, width) and label scores (windows, subwords, labels)."""
        hidden = self.reader.states(*inputs)
        return hidden, self.reader.labels(hidden)


def export(reader: JointReader, tokenizer: Path, folder: Path, *, quantised: bool) -> None:
    """Write graph, heads and tokenizer of a network in evaluation mode to a folder.

    The tokenizer is copied without its truncation and padding. `quantised` graphs have weights and
    activations of 8 bits.
    """
    folder.mkdir(parents=True, exist_ok=True)
    # In ONNX, eager attention takes a quarter less time than PyTorch's fused attention.
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
        _quantise(path)
    heads = {
        name: weight
        for name, weight in reader.state_dict().items()
        if name.startswith(("relevance.", "owner."))
    }
    heads["distance"] = reader.distance.weight
    if reader.crf is not None:
        heads["crf.start"] = reader.crf.start_scores
        heads["crf.pairs"] = reader.crf.pair_scores
        heads["crf.end"] = reader.crf.end
    arrays = {name: weight.float().numpy(force=True) for name, weight in heads.items()}
    np.savez(folder / HEADS, **arrays)
    plain = Tokenizer.from_file(str(tokenizer))
    plain.no_truncation()
    plain.no_padding()
    plain.save(str(folder / TOKENIZER))


_LARGEST: Final = 8.0


def _quantise(path: Path) -> None:
    """Quantise a graph file to 8 bits, weights and activations.

    The inputs of matrices with more rows than columns are limited to the range of `_LARGEST`. A
    layer has one step of 8 bits for all its inputs: a few large ones would make it too coarse for
    the others. (Of 4, 6 and 8, the last was best on dev, and better than no limit.)
    """
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


_PREFIX: Final = "reader."
_QUANTISED: Final = "_quantized"


def restore(reader: JointReader, *folders: Path) -> None:
    """Load the mean of the weights that `export` wrote to the folders, dequantised if in 8 bits.

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


def _stored(graph: Any) -> dict[str, Floats]:
    """Return the weights by their names in the graph."""
    stored = {array.name: numpy_helper.to_array(array) for array in graph.initializer}
    for node in graph.node:
        # Equal weights are stored once.
        if node.op_type == "Identity" and node.input[0] in stored:
            stored[node.output[0]] = stored[node.input[0]]
    weights: dict[str, Floats] = {}
    for name, array in stored.items():
        if name.endswith(_QUANTISED):
            plain = name.removesuffix(_QUANTISED)
            centred = array.astype(np.float32) - stored[f"{plain}_zero_point"].astype(np.float32)
            weights[plain] = (centred * stored[f"{plain}_scale"]).astype(np.float32)
        elif not name.endswith(("_scale", "_zero_point")):
            weights[name] = array.astype(np.float32)
    return weights


def _of_graph(graph: Any) -> dict[str, Floats]:
    """Return the weights by their names in torch.

    The export transposes the weights of linear layers and drops their names: they are found from
    the bias that is added to the product.
    """
    weights = _stored(graph)
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
            if bias in weights and bias.endswith(".bias"):
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
