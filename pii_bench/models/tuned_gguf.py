"""Writes a GGUF file of which some weights were changed by fine-tuning.

Everything else, the tokenizer and the chat template among it, is copied from the file that was
fine-tuned, so that whatever serves the one serves the other.
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
_NAME: Final = "general.name"


def check_architecture(base: Path) -> None:
    """Refuse a model whose changes could not be written back.

    Raises:
        InputFileError: another architecture than Llama's, whose layout of weights differs.
    """
    found = gguf.GGUFReader(base).fields["general.architecture"].contents()
    if found != _ARCHITECTURE:
        what = f"architecture {found!r} cannot be fine-tuned from GGUF; allowed: {_ARCHITECTURE!r}"
        raise InputFileError(base, f"{what}; or give the folder of the model in safetensors")


def write_tuned(base: Path, changes: Mapping[str, NDArray[np.float32]], out: Path) -> None:
    """Write `base` with changes added to its weights.

    Changed weights are stored as 16-bit floats: the few bits of the original's quantisation
    would not hold what was learnt.

    Args:
        base: a GGUF file of a Llama-like model.
        changes: what is added, (rows, columns) by the name that transformers gives the weight,
            such as `model.layers.0.self_attn.q_proj.weight`.
        out: the file to write.

    Raises:
        InputFileError: `base` lacks a weight that was changed.
        ResultsError: `out` cannot be written.
    """
    reader = gguf.GGUFReader(base)
    added = {
        name: _permuted(reader, name, change)
        for name, change in ((_gguf_name(reader, key), change) for key, change in changes.items())
    }
    if missing := sorted(set(added) - {tensor.name for tensor in reader.tensors}):
        raise InputFileError(base, f"has no weights {', '.join(missing)}")
    with writing(out):
        out.parent.mkdir(parents=True, exist_ok=True)
        # Not `replacing`: the library writes to a path.
        new = out.with_name(f".{out.name}.new")
        _write(reader, added, new)
        new.replace(out)


def _write(reader: gguf.GGUFReader, added: Mapping[str, NDArray[np.float32]], out: Path) -> None:
    writer = gguf.GGUFWriter(out, _ARCHITECTURE)
    for field in reader.fields.values():
        if field.name in _HEADER:
            continue
        kind = field.types[0]
        inner = field.types[-1] if kind is gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(field.name, field.contents(), kind, sub_type=inner)
    for tensor in reader.tensors:
        if tensor.name in added:
            whole = gguf.dequantize(tensor.data, tensor.tensor_type) + added[tensor.name]
            writer.add_tensor(tensor.name, whole.astype(np.float16))
        else:
            writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _gguf_name(reader: gguf.GGUFReader, name: str) -> str:
    """The name in GGUF of a weight of transformers."""
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, _number(reader, "block_count"))
    stem = names.get_name(name.removesuffix(_WEIGHT))
    return f"{stem or name.removesuffix(_WEIGHT)}{_WEIGHT}"


def _permuted(
    reader: gguf.GGUFReader, name: str, change: NDArray[np.float32]
) -> NDArray[np.float32]:
    """The rows in GGUF's order.

    Queries and keys are rotated by position in pairs of dimensions: transformers pairs the two
    halves of a head, llama.cpp neighbours (`permute` of llama.cpp's `convert_hf_to_gguf.py`).
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
