"""Causal language models in torch, from a folder or a GGUF file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from pii_bench.errors import InputFileError

if TYPE_CHECKING:
    from pathlib import Path


def load(base: Path) -> tuple[Any, Any]:
    """Load the tokenizer and the model of a GGUF file or a folder, in 32-bit floats.

    Raises:
        InputFileError: a GGUF file whose architecture is not Llama's, so that its weights are laid
            out differently.
    """
    if base.is_dir():
        source: dict[str, Any] = {"pretrained_model_name_or_path": base}
    else:
        import gguf

        architecture = gguf.GGUFReader(base).fields["general.architecture"].contents()
        if architecture != "llama":
            raise InputFileError(
                base,
                f"architecture {architecture!r} cannot be fine-tuned from GGUF; allowed: 'llama'; "
                "or give the folder of the model in safetensors",
            )
        source = {"pretrained_model_name_or_path": base.parent, "gguf_file": base.name}
    tokenizer = AutoTokenizer.from_pretrained(**source, local_files_only=True)
    model = AutoModelForCausalLM.from_pretrained(
        **source, local_files_only=True, dtype=torch.float32
    )
    if base.is_dir():
        return tokenizer, model
    # `Trainer` refuses a model read from a quantised file, although its weights are floats now.
    del model.config.quantization_config
    untyped: Any = AutoModelForCausalLM
    copy = untyped.from_config(model.config, dtype=torch.float32)
    copy.load_state_dict(model.state_dict())
    return tokenizer, copy
