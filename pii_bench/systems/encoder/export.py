"""The trained network as files that run without torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from pii_bench.systems.encoder.files import GRAPH, HEADS, TOKENIZER
from pii_bench.systems.encoder.network import Exported

if TYPE_CHECKING:
    from pathlib import Path

    from pii_bench.systems.encoder.network import JointReader


def export(reader: JointReader, tokenizer: Path, folder: Path, *, quantised: bool) -> None:
    """Write graph, heads and tokenizer.

    Args:
        reader: in evaluation mode.
        tokenizer: file of the encoder's tokenizer, copied without its truncation and padding.
        folder: where the files go.
        quantised: whether the weights are of 8 bits.
    """
    folder.mkdir(parents=True, exist_ok=True)
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
        from onnxruntime.quantization import QuantType, quantize_dynamic

        whole = path.with_name("whole.onnx")
        path.rename(whole)
        quantize_dynamic(whole, path, weight_type=QuantType.QInt8, per_channel=True)
        whole.unlink()
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
