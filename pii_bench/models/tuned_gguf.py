"""Writing a fine-tuned model as a GGUF file.

Everything but the changed weights, tokenizer and chat template included, is copied from the base
model's file, so that the same servers can load it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import gguf
import numpy as np

from pii_bench.errors import InputFileError
from pii_bench.files import writing

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

_ARCHITECTURE: Final = "llama"
_WEIGHT: Final = ".weight"
_HEADER: Final = ("GGUF.version", "GGUF.tensor_count", "GGUF.kv_count", "general.architecture")


def check_architecture(base: Path) -> None:
    """Refuse a model that `write_tuned` cannot write.

    Raises:
        InputFileError: the architecture is not Llama's, so that its weights are laid out
            differently.
    """
    architecture = gguf.GGUFReader(base).fields["general.architecture"].contents()
    if architecture != _ARCHITECTURE:
        raise InputFileError(
            base,
            f"architecture {architecture!r} cannot be fine-tuned from GGUF; allowed: "
            f"{_ARCHITECTURE!r}; or give the folder of the model in safetensors",
        )


def write_tuned(base: Path, changes: Mapping[str, NDArray[np.float32]], out: Path) -> None:
    """Write a copy of `base` with changes added to its weights.

    Changed weights are stored as 16-bit floats: the few bits of a quantised weight cannot
    represent small changes. The changes are matrices by the weight's name in transformers, such as
    `model.layers.0.self_attn.q_proj.weight`.

    Raises:
        InputFileError: `base` lacks one of the weights.
        ResultsError: `out` cannot be written.
    """
    reader = gguf.GGUFReader(base)
    names = {key: _gguf_name(reader, key) for key in changes}
    added = {name: _permuted(reader, name, changes[key]) for key, name in names.items()}
    if missing := sorted(set(added) - {tensor.name for tensor in reader.tensors}):
        raise InputFileError(base, f"has no weights {', '.join(missing)}")
    with writing(out):
        out.parent.mkdir(parents=True, exist_ok=True)
        # Not `replacing`: the library takes a path, not a file object.
        new = out.with_name(f".{out.name}.new")
        _write(reader, added, new)
        new.replace(out)


def _write(reader: gguf.GGUFReader, added: Mapping[str, NDArray[np.float32]], out: Path) -> None:
    writer = gguf.GGUFWriter(out, _ARCHITECTURE)
    for field in reader.fields.values():
        if field.name in _HEADER:
            continue
        kind = field.types[0]
        item_kind = field.types[-1] if kind is gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(field.name, field.contents(), kind, sub_type=item_kind)
    for tensor in reader.tensors:
        if tensor.name in added:
            weight = gguf.dequantize(tensor.data, tensor.tensor_type) + added[tensor.name]
            writer.add_tensor(tensor.name, weight.astype(np.float16))
        else:
            writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _gguf_name(reader: gguf.GGUFReader, name: str) -> str:
    """Return the GGUF name for a weight's name in transformers."""
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, _number(reader, "block_count"))
    stem = names.get_name(name.removesuffix(_WEIGHT))
    return f"{stem or name.removesuffix(_WEIGHT)}{_WEIGHT}"


def _permuted(
    reader: gguf.GGUFReader, name: str, change: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Return the matrix with its rows in GGUF's order.

    Rotary embeddings rotate pairs of dimensions of queries and keys: transformers pairs the two
    halves of a head, llama.cpp neighbours (`permute` in llama.cpp's `convert_hf_to_gguf.py`).
    """
    if name.endswith(f"attn_q{_WEIGHT}"):
        heads = _number(reader, "attention.head_count")
    elif name.endswith(f"attn_k{_WEIGHT}"):
        heads = _number(reader, "attention.head_count_kv")
    else:
        return change
    rows, columns = change.shape
    halves = change.reshape(heads, 2, rows // heads // 2, columns)
    return halves.swapaxes(1, 2).reshape(rows, columns)


def _number(reader: gguf.GGUFReader, key: str) -> int:
    return int(reader.fields[f"{_ARCHITECTURE}.{key}"].contents())
